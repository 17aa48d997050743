"""What the process of a task does before it serves."""

from __future__ import annotations

import os
import resource
import socket

import pytest

from ringlet.coordinator import local_task


@pytest.fixture
def serve(monkeypatch):
    """Gives what was served."""
    served = []
    monkeypatch.setattr("ringlet.coordinator.local_task.serve", lambda *task: served.append(task))
    return served


def test_the_connection_is_served_and_no_program_inherits_it(serve):
    ours, theirs = socket.socketpair()
    with theirs:
        os.set_inheritable(ours.fileno(), True)
        local_task.main(ours.detach(), "ps", 1)
        ((channel, *task),) = serve
        assert task == ["ps", 1]
        assert channel.peer == "the coordinator"
        assert not os.get_inheritable(channel.fileno())
        channel.close()


def test_a_task_may_open_as_many_files_as_the_system_allows(serve, monkeypatch):
    limits = []
    monkeypatch.setattr("resource.getrlimit", lambda kind: (1024, 4096))
    monkeypatch.setattr("resource.setrlimit", lambda kind, limit: limits.append((kind, limit)))
    test_the_connection_is_served_and_no_program_inherits_it(serve)
    assert limits == [(resource.RLIMIT_NOFILE, (4096, 4096))]
