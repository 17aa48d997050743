"""A task serves its coordinator until that is gone."""

from __future__ import annotations

import os
import threading

import pytest

from ringlet.coordinator.task_main import serve
from ringlet.ipc import LocalChannel, pack, unpack
from tests.processes.harness import descriptors_of


@pytest.mark.parametrize("task_type", ["worker", "ps"])
def test_it_ends_when_the_coordinator_is_gone(task_type):
    ours, theirs = LocalChannel.pair("the coordinator", "the task")
    thread = threading.Thread(target=serve, args=(theirs, task_type, 0), daemon=True)
    thread.start()
    ours.close()
    thread.join(30)
    assert not thread.is_alive()
    assert theirs.is_closed


def test_a_parameter_server_answers_requests_for_tables():
    ours, theirs = LocalChannel.pair("the coordinator", "the task")
    threading.Thread(target=serve, args=(theirs, "ps", 0), daemon=True).start()
    ours.send(*pack((12, ("create", 7, (2, 3), "float32"))))
    reply = ours.receive()
    assert unpack(reply.header, reply.buffers) == (12, ("created", 7))
    (descriptor,) = reply.descriptors
    os.close(descriptor)
    ours.close()


def test_a_parameter_server_has_no_open_files_but_its_tables():
    before = descriptors_of()
    ours, theirs = LocalChannel.pair("the coordinator", "the task")
    thread = threading.Thread(target=serve, args=(theirs, "ps", 0), daemon=True)
    thread.start()
    for key in range(20):
        ours.send(*pack((key, ("create", key, (2, 3), "float32"))))
        (descriptor,) = ours.receive().descriptors
        os.close(descriptor)
    ours.send(*pack((20, ("forget", list(range(20))))))
    assert unpack(ours.receive().header, []) == (20, ("forgotten", 0))
    ours.close()
    thread.join(30)
    assert descriptors_of() <= before
