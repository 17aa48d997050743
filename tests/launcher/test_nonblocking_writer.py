"""Writing never waits for a reader."""

from __future__ import annotations

import os
import threading

import pytest

from ringlet.launcher.nonblocking_writer import Screen


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    ends = [reader, writer]
    yield ends
    for end in ends:
        os.close(end)


def test_what_is_written_arrives_in_order(pipe):
    screen = Screen(pipe[1])
    for number in range(100):
        screen.write(b"%d\n" % number)
    assert screen.flush(10.0)
    assert os.read(pipe[0], 1 << 16).split() == [b"%d" % number for number in range(100)]


def test_writing_does_not_wait_for_a_reader_that_is_slow(pipe):
    screen = Screen(pipe[1])
    screen.write(b"x" * (1 << 20))
    assert screen.backlog > 0
    assert not screen.flush(0.05)
    received = 0
    while received < 1 << 20:
        received += len(os.read(pipe[0], 1 << 16))
    assert screen.flush(10.0)


def test_a_thread_that_cannot_be_had_is_an_error_of_the_system(monkeypatch):
    def fail(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    with pytest.raises(BlockingIOError):
        Screen(1)


def test_what_nobody_can_read_is_dropped(pipe):
    screen = Screen(pipe[1])
    os.close(pipe.pop(0))
    screen.write(b"x")
    assert screen.flush(10.0)
    assert isinstance(screen.error, BrokenPipeError)
    screen.write(b"more")
    assert screen.backlog == 0
