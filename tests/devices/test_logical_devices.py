"""The logical devices of a process: their number is open until somebody reads them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ringlet.devices import CoreCount, LogicalDevices


def devices(environment: dict[str, str] | None = None) -> LogicalDevices:
    return LogicalDevices(environment or {}, cores=lambda: CoreCount(3, "three cores"))


def test_there_is_one_device_for_each_core():
    found = devices()
    assert [name.rpartition("/")[2] for name in found.names()] == ["device:CPU:0", "device:CPU:1", "device:CPU:2"]
    assert found.reason == "three cores"


def test_the_environment_chooses_their_number():
    found = devices({"RINGLET_NUM_DEVICES": " 5 "})
    assert (len(found.names()), found.reason) == (5, "RINGLET_NUM_DEVICES")


def test_set_count_wins_over_the_environment():
    found = devices({"RINGLET_NUM_DEVICES": "5"})
    found.set_count(2)
    assert (found.reason, len(found.names())) == ("set_logical_devices", 2)


def test_their_number_cannot_change_after_use():
    found = devices()
    found.names()
    with pytest.raises(RuntimeError, match=r"cannot change .* to 4: this process uses 3 already \(three cores\)"):
        found.set_count(4)
    assert len(found.names()) == 3


def test_asking_for_the_number_in_use_is_no_change():
    found = devices()
    found.names()
    found.set_count(3)


def test_reading_the_reason_is_no_use():
    found = devices()
    assert found.reason == "three cores"
    found.set_count(7)
    assert len(found.names()) == 7


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", None, True, np.True_, np.ones(2, int)])
def test_a_number_that_is_none_is_refused(count):
    with pytest.raises(ValueError, match="an int of at least 1"):
        devices().set_count(count)


def test_numpys_integers_are_numbers():
    asked = devices()
    asked.set_count(np.int64(2))
    assert len(asked.names()) == 2


@pytest.mark.parametrize("text", ["0", "-2", "two", "1.5"])
def test_a_bad_variable_is_named(text):
    with pytest.raises(ValueError, match=f"RINGLET_NUM_DEVICES is a whole number of at least 1, got '{text}'"):
        devices({"RINGLET_NUM_DEVICES": text}).names()


def test_a_process_has_as_many_devices_as_its_environment_says():
    code = "import ringlet; print(ringlet.MirroredStrategy())"
    environment = {"RINGLET_NUM_DEVICES": "3", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "MirroredStrategy(['CPU:0', 'CPU:1', 'CPU:2'])"


def test_only_a_number_that_somebody_asked_for_is_a_request():
    assert devices().requested() == ()
    assert len(devices({"RINGLET_NUM_DEVICES": "5"}).requested()) == 5
    chosen = devices()
    chosen.set_count(2)
    assert len(chosen.requested()) == 2
