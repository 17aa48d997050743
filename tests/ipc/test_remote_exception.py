"""Exceptions of other processes."""

from __future__ import annotations

import pickle
import traceback

import pytest

from ringlet.ipc.remote_exception import Failure, exception_of, failure_of


class NeedsTwo(Exception):
    """Cannot be unpickled: its constructor takes something else than ``args``."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def told(error, pickled=None):
    text = f"Traceback (most recent call last):\n  File ...\n{type(error).__name__}: {error}\n"
    return Failure(pickle.dumps(error) if pickled is None else pickled, type(error).__qualname__, str(error), text)


def test_the_exception_of_a_worker_has_its_class_and_shows_its_traceback():
    error = exception_of(told(KeyError("weights")), "worker 1 of 4")
    assert type(error) is KeyError
    assert error.args == ("weights",)
    shown = "".join(traceback.format_exception(error))
    assert "worker 1 of 4 raised it:\n\nTraceback (most recent call last):\n  File ...\nKeyError: 'weights'" in shown


@pytest.mark.parametrize("pickled", [b"", b"not a pickle"])
def test_an_exception_that_cannot_be_sent_is_named_by_another_one(pickled):
    error = exception_of(told(ValueError("odd"), pickled), "worker 1 of 4")
    assert type(error) is RuntimeError
    assert str(error) == "worker 1 of 4 raised ValueError: odd"
    assert "ValueError: odd" in str(error.__cause__)


def test_an_exception_that_cannot_be_printed_is_described_nevertheless():
    class Unprintable(Exception):
        def __str__(self):
            raise AttributeError("code")

    failure = failure_of(Unprintable())
    assert (failure.name.split(".")[-1], failure.message) == (
        "Unprintable",
        "(it cannot be printed: AttributeError)",
    )


def test_a_failure_is_shown_without_the_frames_that_called_the_function():
    try:
        int("x")
    except ValueError as error:
        whole, shown = failure_of(error), failure_of(error, {__file__})
    assert __file__ in whole.text
    assert __file__ not in shown.text
    assert isinstance(pickle.loads(shown.pickled), ValueError)


def test_an_exception_that_could_not_be_unpickled_is_not_pickled():
    assert failure_of(NeedsTwo(1, 2)).pickled == b""
    assert failure_of(NeedsTwo(1, 2)).message == "1 and 2"
