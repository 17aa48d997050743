"""Remote exceptions: exceptions that one process sends to another, which raises them again."""

from __future__ import annotations

import contextlib
import pickle
import time
import traceback
from collections.abc import Collection
from dataclasses import dataclass, field

from ringlet.errors.exception_notes import add_note
from ringlet.ipc.pickle_codec import dumps


class WorkerTraceback(Exception):
    """Cause of an exception that was raised in a worker; its text is the traceback in the worker."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class Failure:
    """An exception raised by a function in a worker.

    `pickled` is empty if the exception cannot be pickled; `text` is its traceback; `at` is the ``time.monotonic()`` at
    which it was caught, by which failures are ordered.
    """

    pickled: bytes
    name: str
    message: str
    text: str
    at: float = field(default=0.0, compare=False)


def failure_of(error: BaseException, files: Collection[str] = ()) -> Failure:
    """Describe an exception in a form that can be sent to another process.

    The traceback starts at the first frame outside of `files`, the source files that call the user's function.
    """
    at = time.monotonic()
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in files:
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace))
    return Failure(_pickled(error), type(error).__qualname__, _message_of(error), text, at)


def exception_of(failure: Failure, worker: str) -> BaseException:
    """Return the exception that a worker raised, with the worker's traceback as its cause.

    The exception has the same class if it can be pickled and unpickled; otherwise it is a RuntimeError that names it.
    """
    error: BaseException
    try:
        error = pickle.loads(failure.pickled)
    except Exception:
        error = RuntimeError(f"{worker} raised {failure.name}: {failure.message}")
        reason = "usually because its __init__ does not pass its arguments to super().__init__"
        add_note(error, f"{failure.name} cannot be pickled, {reason}")
    error.__cause__ = WorkerTraceback(f"{worker} raised it:\n\n{failure.text}")
    return error


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as fault:  # the exception's own __str__ may raise
        return f"(it cannot be printed: {type(fault).__qualname__})"


def _pickled(error: BaseException) -> bytes:
    # Also unpickle: many exceptions can be pickled but not unpickled, because their constructors take other arguments.
    with contextlib.suppress(Exception):
        pickled = dumps(error)
        pickle.loads(pickled)
        return pickled
    return b""
