"""Exceptions that were raised in another process, as they travel and as they are raised again."""

from __future__ import annotations

import contextlib
import pickle
import time
import traceback
from collections.abc import Collection
from dataclasses import dataclass, field

from ringlet.ipc.call_codec import dumps

__all__ = ["Failure", "WorkerTraceback", "exception_of", "failure_of"]


class WorkerTraceback(Exception):
    """The cause of an exception that was raised in a worker: its traceback there, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class Failure:
    """The exception that a function has raised in a worker.

    Attributes
    ----------
    pickled : bytes
        The exception; empty if it cannot be pickled.
    name, message : str
        Of its class, and what it says.
    text : str
        Its traceback as Python prints it.
    at : float
        The ``time.monotonic()`` at which it was caught, before it was pickled: of two failures, the lower is the first.
    """

    pickled: bytes
    name: str
    message: str
    text: str
    at: float = field(default=0.0, compare=False)


def failure_of(error: BaseException, files: Collection[str] = ()) -> Failure:
    r"""Describe an exception for another process.

    Parameters
    ----------
    error : BaseException
    files : collection of str
        The traceback is shown without its outermost frames, as long as they are of these files: those that call users'
        functions.

    Returns
    -------
    Failure

    Examples
    --------
    >>> failure = failure_of(KeyError("weights"))
    >>> failure.name, failure.text
    ('KeyError', "KeyError: 'weights'\n")
    """
    at = time.monotonic()
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in files:
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace))
    return Failure(_pickled(error), type(error).__qualname__, _message_of(error), text, at)


def exception_of(failure: Failure, who: str) -> BaseException:
    """Make the exception that a worker has raised, with its traceback there as its cause.

    Parameters
    ----------
    failure : Failure
    who : str
        Which worker.

    Returns
    -------
    BaseException
        Of the same class, if it can be pickled; else a RuntimeError that names the class.

    Examples
    --------
    >>> exception_of(failure_of(KeyError("weights")), "worker 1 of 4")
    KeyError('weights')
    """
    error: BaseException
    try:
        error = pickle.loads(failure.pickled)
    except Exception:
        error = RuntimeError(f"{who} raised {failure.name}: {failure.message}")
    error.__cause__ = WorkerTraceback(f"{who} raised it:\n\n{failure.text}")
    return error


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as fault:  # of its class
        return f"(it cannot be printed: {type(fault).__qualname__})"


def _pickled(error: BaseException) -> bytes:
    # Many exceptions can be pickled, but not unpickled: their constructor has other arguments.
    with contextlib.suppress(Exception):
        pickled = dumps(error)
        pickle.loads(pickled)
        return pickled
    return b""
