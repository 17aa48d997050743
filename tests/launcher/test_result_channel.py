"""What came of a call in a worker, as its parent sees it."""

from __future__ import annotations

import os

import numpy as np
import pytest

from ringlet.ipc.pickle_codec import pack_result, send
from ringlet.ipc.remote_exception import failure_of
from ringlet.launcher.result_channel import ResultChannel


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


def raised_from(cause):
    try:
        raise RuntimeError("the step failed") from cause
    except RuntimeError as error:
        return failure_of(error)


def test_a_failure_is_read_and_when_it_came(pipe):
    channel, writer = pipe
    failure = raised_from(None)
    send(writer, pack_result(False, failure))
    channel.read(5.0)
    assert (channel.failure, channel.failure.at) == (failure, failure.at)
