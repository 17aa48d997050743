"""That a process is never taken for another one."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import pytest

from ringlet.rendezvous.handshake import held_by
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.process_identity import ProcessIdentity


@pytest.fixture
def identity():
    return ProcessIdentity.of_this_process()


def test_a_process_that_runs_has_not_ended(identity):
    assert identity.pid == os.getpid()
    assert not identity.has_ended()


def test_a_pid_that_was_given_out_again_counts_as_ended(identity):
    # reliability B5: the number lives, its owner started at another time.
    assert dataclasses.replace(identity, start_ticks=identity.start_ticks - 1).has_ended()


def test_a_process_that_is_gone_has_ended(identity):
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert dataclasses.replace(identity, pid=child.pid).has_ended()


def test_a_process_whose_name_looks_like_fields_is_read_right():
    code = (
        "import ctypes; ctypes.CDLL(None).prctl(15, b'a) S 1 2 (b'); "
        "from ringlet.rendezvous.process_identity import ProcessIdentity;"
        "identity = ProcessIdentity.of_this_process(); print(identity.has_ended(), identity.start_ticks > 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False True\n"


def test_the_age_of_a_process_is_told(identity):
    assert 0 <= identity.seconds_since_start() < 86400


def test_who_holds_a_rank_is_told_alive_or_ended(identity):
    assert f"rank 3 is held by pid {os.getpid()}" in held_by([3], identity, Job("", "", 4))
    gone = dataclasses.replace(identity, start_ticks=identity.start_ticks - 1)
    assert "has ended, so its group is over" in held_by([3], gone, Job("", "", 4))


@pytest.mark.parametrize(
    "record",
    [None, [], {}, {"pid": 1}, {"pid": "1"}, "text"],
)
def test_a_record_that_is_no_identity_is_refused(record):
    with pytest.raises(ValueError, match="identity"):
        ProcessIdentity.from_record(record)


@pytest.mark.parametrize(("name", "value"), [("pid", "1"), ("pid", True), ("start_ticks", 1.0), ("host", None)])
def test_a_record_with_a_value_of_another_type_is_refused(identity, name, value):
    with pytest.raises(ValueError, match="other types"):
        ProcessIdentity.from_record({**identity.as_record(), name: value})
