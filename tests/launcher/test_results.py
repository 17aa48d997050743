"""What came of a call in a worker, as its parent sees it."""

from __future__ import annotations

import os
import pickle
import traceback

import numpy as np
import pytest

from ringlet.launcher.called import Failure
from ringlet.launcher.parcels import pack_result, send
from ringlet.launcher.results import ResultChannel, exception_of


@pytest.fixture
def pipe():
    """A channel, and the end of its pipe to which a worker would write."""
    reader, writer = os.pipe()
    channel = ResultChannel(2, reader)
    yield channel, writer
    channel.close()
    channel.close()
    os.close(writer)


def failure_of(error, pickled=None):
    text = f"Traceback (most recent call last):\n  File ...\n{type(error).__name__}: {error}\n"
    return Failure(pickle.dumps(error) if pickled is None else pickled, type(error).__qualname__, str(error), text)


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


def test_the_exception_of_a_worker_has_its_class_and_shows_its_traceback():
    error = exception_of(failure_of(KeyError("weights")), "worker 1 of 4")
    assert type(error) is KeyError
    assert error.args == ("weights",)
    shown = "".join(traceback.format_exception(error))
    assert "worker 1 of 4 raised it:\n\nTraceback (most recent call last):\n  File ...\nKeyError: 'weights'" in shown


@pytest.mark.parametrize("pickled", [b"", b"not a pickle"])
def test_an_exception_that_cannot_be_sent_is_named_by_another_one(pickled):
    error = exception_of(failure_of(ValueError("odd"), pickled), "worker 1 of 4")
    assert type(error) is RuntimeError
    assert str(error) == "worker 1 of 4 raised ValueError: odd"
    assert "ValueError: odd" in str(error.__cause__)
