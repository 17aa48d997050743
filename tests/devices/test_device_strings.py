"""Device names: every form that TensorFlow reads, the two forms that are printed, and what is refused."""

from __future__ import annotations

import logging

import pytest

from ringlet.devices import Device, canonicalize, canonicalize_distinct, device_strings, short_list, short_name
from ringlet.errors import DuplicateDeviceError

FIRST = "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.mark.parametrize(
    ("name", "full"),
    [
        # as given                            full form
        ("CPU:0", FIRST),
        ("cpu:0", FIRST),
        ("CPU", FIRST),
        ("/cpu:0", FIRST),
        ("/CPU:0", FIRST),
        ("/device:CPU:0", FIRST),
        ("device:cpu:0", FIRST),
        (FIRST, FIRST),
        (" CPU:0 ", FIRST),
        ("", FIRST),
        ("/device:CPU:*", FIRST),
        ("/task:*/cpu:0", FIRST),
        ("CPU:12", FIRST[:-1] + "12"),
        ("GPU:1", FIRST.replace("CPU:0", "GPU:1")),
        ("/device:XPU:3", FIRST.replace("CPU:0", "XPU:3")),
        ("/job:worker/task:1", "/job:worker/replica:0/task:1/device:CPU:0"),
        ("/job:ps/replica:2/task:3/device:CPU:4", "/job:ps/replica:2/task:3/device:CPU:4"),
    ],
)
def test_every_form_has_one_full_name(name, full):
    assert canonicalize(name) == full
    assert canonicalize(full) == full


@pytest.mark.parametrize(
    ("name", "bad_part"),
    [
        ("nonsense", "nonsense"),
        ("CPU:x", "CPU:x"),
        ("CPU:-1", "CPU:-1"),
        ("CPU:0:1", "CPU:0:1"),
        ("XPU:0", "XPU:0"),
        ("/job:worker/tusk:1", "tusk:1"),
        ("/job:/task:0", "job:"),
        ("/device:*", "device:*"),
        ("/device:device:0", "device:device:0"),
        ("/task:one/cpu:0", "task:one"),
    ],
)
def test_a_string_that_cannot_be_read_is_refused_by_its_bad_part(name, bad_part):
    with pytest.raises(ValueError, match="is not valid") as caught:
        canonicalize(name)
    assert repr(bad_part) in str(caught.value)
    assert "'CPU:0'" in str(caught.value)


@pytest.mark.parametrize("name", ["/CPU:0/GPU:0", "/job:a/job:b", "/task:0/task:0"])
def test_a_string_that_names_two_devices_is_refused(name):
    with pytest.raises(ValueError, match=f"{name!r} specifies the (kind|job|task) a second time"):
        Device.parse(name)


@pytest.mark.parametrize("name", [0, None, ["CPU:0"], b"CPU:0"])
def test_what_is_no_string_is_refused(name):
    with pytest.raises(TypeError, match="a device must be a string such as 'CPU:0'"):
        canonicalize(name)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (FIRST, "CPU:0"),
        ("GPU:0", "GPU:0 (host memory)"),
        ("TPU:3", "TPU:3"),
        ("/job:worker/task:1/device:CPU:2", "/job:worker/task:1 CPU:2"),
    ],
)
def test_people_read_the_short_form(name, short):
    assert short_name(name) == short


def test_a_list_of_many_devices_is_cut():
    assert short_list([f"CPU:{n}" for n in range(16)]) == repr([f"CPU:{n}" for n in range(16)])
    assert short_list([f"CPU:{n}" for n in range(1000)]) == "['CPU:0', 'CPU:1', 'CPU:2', ..., 'CPU:999']"


def test_hardware_that_is_a_name_only_is_logged_once(caplog, monkeypatch):
    monkeypatch.setattr(device_strings, "_warned_kinds", set())
    for name in ("GPU:0", "GPU:1", "CPU:0", "TPU:0"):
        canonicalize(name)
    assert [(record.levelno, "GPU:0" in record.getMessage()) for record in caplog.records] == [(logging.WARNING, True)]


def test_the_same_device_in_two_forms_is_a_duplicate():
    with pytest.raises(DuplicateDeviceError, match="CPU:1 occurs 2 times") as caught:
        canonicalize_distinct(["CPU:0", "CPU:1", "/cpu:1"])
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, AssertionError)


def test_distinct_devices_keep_their_order():
    assert canonicalize_distinct(["CPU:3", "CPU:1"]) == (FIRST[:-1] + "3", FIRST[:-1] + "1")


def test_a_device_is_a_value():
    assert Device.parse("CPU:1") == Device(index=1)
    assert len({Device.parse("CPU:1"), Device.parse("/cpu:1")}) == 1
