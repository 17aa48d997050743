"""What a scheduled function will have returned."""

from __future__ import annotations

import enum
import itertools
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ringlet import nest
from ringlet.errors import CancelledError, FailedPreconditionError
from ringlet.ipc import unpack
from ringlet.ipc.call_codec import Unsendable
from ringlet.ipc.remote_exception import Failure, exception_of

__all__ = ["ABORTED", "CANCELLED", "RemoteFailure", "RemoteValue", "RemoteValueStatus"]

CANCELLED = "The corresponding function is cancelled. Please reschedule the function."
ABORTED = "The corresponding function is aborted. Please reschedule the function."


class RemoteValueStatus(enum.Enum):
    """What is known of the value of a scheduled function."""

    NOT_READY = "NOT_READY"
    """It has not been run yet."""
    ABORTED = "ABORTED"
    """What it made was lost with its worker, and will be made again."""
    READY = "READY"
    """It has returned or raised, or was cancelled."""


@dataclass
class RemoteFailure:
    """An exception that was raised on a worker, which is made again by who raises it here.

    Not where it arrives: its class may have to be imported, and who waits for it may hold the lock of that import.
    """

    failure: Failure
    who: str

    def exception(self) -> BaseException:
        """Give the exception, the same one every time."""
        made: BaseException | None = vars(self).get("_exception")
        if made is None:
            made = vars(self).setdefault("_exception", exception_of(self.failure, self.who))
        return made


class RemoteValue:
    """What a scheduled function will have returned (``tf.distribute.coordinator.RemoteValue``).

    Made by :meth:`~ringlet.coordinator.ClusterCoordinator.schedule`.

    Examples
    --------
    >>> RemoteValue()
    <RemoteValue NOT_READY>
    """

    __slots__ = ("__weakref__", "_content", "_error", "_event", "_is_promised", "_number", "_status", "_value")

    _stays_there = False  # on its worker

    def __init__(self) -> None:
        self._number = next(_numbers)  # by which workers know it that hold it
        self._status = RemoteValueStatus.NOT_READY
        self._is_promised = False
        self._error: Any = None
        self._content: tuple[bytes, Sequence[Any]] | None = None
        self._value: Any = None
        self._event: threading.Event | None = None

    @classmethod
    def _promised(cls) -> RemoteValue:
        """Make one that somebody will settle."""
        made = cls()
        made._is_promised = True
        return made

    def fetch(self) -> Any:
        """Wait for the value and give it, with NumPy arrays in place of tensors.

        Returns
        -------
        nested structure
            What the function has returned; its arrays are read-only. The same every time.

        Raises
        ------
        CancelledError
            If the function was not run because another one failed; schedule it again.
        NotImplementedError
            If no coordinator has made this object.
        Exception
            Which the function has raised. Its cause shows the traceback on the worker.
        """
        value = self.get()
        if nest.is_nested(value):
            return nest.map_structure(_as_numpy, value)
        return _as_numpy(value)

    def get(self) -> Any:
        """Wait for the value and give it as the function has returned it; else as :meth:`fetch`."""
        self._wait()
        content = self._content
        if content is not None:
            header, buffers = content
            value = unpack(header, [memoryview(buffer).toreadonly() for buffer in buffers], _resolve)
            with _lock:
                if self._content is not None:
                    self._value, self._content = value, None
        return self._value

    def _wait(self) -> None:
        """Wait until there is a value; raise where there will be none."""
        while self._status is RemoteValueStatus.NOT_READY:
            if not self._is_promised:
                raise NotImplementedError(
                    "nothing gives this RemoteValue a value, which the program has made itself: fetch what "
                    "ClusterCoordinator.schedule returns"
                )
            if self._number < _first_number:
                raise FailedPreconditionError(
                    "this value is awaited in a process that was forked before it was there: fetch it in the process "
                    "that has scheduled its function"
                )
            with _lock:
                if self._event is None:
                    self._event = threading.Event()
                event = self._event
            if self._status is RemoteValueStatus.NOT_READY:  # else nobody sets an event that was made too late
                event.wait()
        if self._status is RemoteValueStatus.ABORTED:
            raise CancelledError(ABORTED) from _exception(self._error)
        error = _exception(self._error)
        if error is not None:
            raise error

    def _settle(
        self,
        content: tuple[bytes, Sequence[Any]] | None = None,
        error: Any = None,
        status: RemoteValueStatus = RemoteValueStatus.READY,
    ) -> None:
        """Set what the function came to, and wake who waits for it."""
        self._content = content
        self._error = error
        self._status = status
        event = self._event
        if event is not None:
            event.set()

    def _unsettle(self) -> None:
        """Forget what it came to: it is made again."""
        with _lock:
            self._status, self._event = RemoteValueStatus.NOT_READY, None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._status.name}>"

    def __reduce__(self) -> Any:
        raise Unsendable(f"cannot send {self!r}, which belongs to the coordinator: fetch it, and send what it holds")


_lock = threading.Lock()
_numbers = itertools.count()
_first_number = 0  # of this process: nobody here sets values that were made before it was forked


def _begin_in_child() -> None:
    global _lock, _first_number
    _lock = threading.Lock()  # a thread that is not here may have held it
    _first_number = next(_numbers)


os.register_at_fork(after_in_child=_begin_in_child)


def _resolve(token: tuple[str, Any]) -> Any:
    """What stands for a variable is its value."""
    return token[1]


def _as_numpy(leaf: Any) -> Any:
    return leaf.numpy() if hasattr(leaf, "numpy") else leaf


def _exception(error: Any) -> BaseException | None:
    made: BaseException | None = error.exception() if isinstance(error, RemoteFailure) else error
    return None if made is None else made.with_traceback(None)  # else it keeps the frames of every raise
