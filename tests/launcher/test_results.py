"""What came of a call in a worker, as its parent sees it."""

from __future__ import annotations

import os

import numpy as np
import pytest

from ringlet.launcher.results import ResultChannel
from ringlet.processes.failures import Failure
from ringlet.processes.parcels import pack_result, send


@pytest.fixture
def pipe():
    """A channel, and the end of its pipe to which a worker would write."""
    reader, writer = os.pipe()
    channel = ResultChannel(2, reader)
    yield channel, writer
    channel.close()
    channel.close()
    os.close(writer)


def test_a_result_is_read(pipe):
    channel, writer = pipe
    send(writer, pack_result(True, np.arange(3)))
    assert not channel.is_complete
    assert not channel.read(0.0), "nothing follows a result"
    assert channel.is_complete
    assert channel.failure is None
    assert channel.value().tolist() == [0, 1, 2]


def test_an_empty_pipe_is_no_end(pipe):
    with pytest.raises(BlockingIOError):
        pipe[0].read(0.0)


def test_a_failure_is_read_and_whether_it_follows_from_another_one(pipe):
    channel, writer = pipe
    failure = Failure(b"", "CollectiveAborted", "rank 1 raised", "Traceback")
    send(writer, pack_result(False, failure))
    channel.read(0.0)
    assert channel.failure == failure
    assert channel.follows
