"""Remote value: the future result of a scheduled function."""

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
from ringlet.ipc.pickle_codec import Unsendable
from ringlet.ipc.remote_exception import Failure, exception_of
from ringlet.values.opaque_value import OpaqueValue

CANCELLED = "The corresponding function is cancelled. Please reschedule the function."
ABORTED = "The corresponding function is aborted. Please reschedule the function."


class RemoteValueStatus(enum.Enum):
    """The state of a scheduled function's value."""

    NOT_READY = "NOT_READY"
    """The function has not finished."""
    ABORTED = "ABORTED"
    """The value was lost with its worker, and will be created again."""
    READY = "READY"
    """The function has returned, raised, or was cancelled."""


@dataclass
class RemoteFailure:
    """An exception of a worker, unpickled by the thread that raises it.

    The receiving thread must not unpickle the exception: unpickling may import a module whose import lock the waiting
    thread holds.
    """

    failure: Failure
    worker: str

    def exception(self) -> BaseException:
        """Return the exception, always the same object."""
        made: BaseException | None = vars(self).get("_exception")
        if made is None:
            made = vars(self).setdefault("_exception", exception_of(self.failure, self.worker))
        return made


class RemoteValue(OpaqueValue):
    """The future result of a scheduled function (``tf.distribute.coordinator.RemoteValue``).

    Returned by :meth:`~ringlet.coordinator.ClusterCoordinator.schedule`.

    Examples
    --------
    >>> RemoteValue()
    <RemoteValue NOT_READY>
    """

    __slots__ = ("__weakref__", "_content", "_error", "_event", "_is_promised", "_number", "_status", "_value")

    _stays_there = False  # whether the value is kept on its worker

    def __init__(self) -> None:
        self._number = next(_numbers)  # identifies the value on workers
        self._status = RemoteValueStatus.NOT_READY
        self._is_promised = False
        self._error: Any = None
        self._content: tuple[bytes, Sequence[Any]] | None = None
        self._value: Any = None
        self._event: threading.Event | None = None

    @classmethod
    def _promised(cls) -> RemoteValue:
        """Return a value that the dispatcher will set."""
        made = cls()
        made._is_promised = True
        return made

    def fetch(self) -> Any:
        """Wait for the value and return it, with NumPy arrays in place of tensors.

        Returns
        -------
        nested structure
            The function's result; arrays are read-only, except for arrays of objects.

        Raises
        ------
        CancelledError
            If the function was cancelled, for example because another function failed; schedule it again.
        NotImplementedError
            If this object was not created by a coordinator.
        FailedPreconditionError
            In a forked child, if the value was not ready at the fork.
        Exception
            The function's error. Its cause shows the traceback on the worker.
        """
        value = self.get()
        if nest.is_nested(value):
            return nest.map_structure(_as_numpy, value)
        return _as_numpy(value)

    def get(self) -> Any:
        """Wait for the value and return it without conversion of tensors; errors as for :meth:`fetch`."""
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
        """Wait until the value is set; raise its error."""
        while self._status is RemoteValueStatus.NOT_READY:
            if not self._is_promised:
                raise NotImplementedError(
                    "this RemoteValue was created by the program and never receives a value: fetch the return value of "
                    "ClusterCoordinator.schedule"
                )
            if self._number < _first_number:
                raise FailedPreconditionError(
                    f"this value was not ready when this process (pid {os.getpid()}) was forked, so this process "
                    "never receives it: fetch it in the process that has scheduled its function"
                )
            with _lock:
                if self._event is None:
                    self._event = threading.Event()
                event = self._event
            if self._status is RemoteValueStatus.NOT_READY:  # otherwise the value was set before the event existed
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
        """Set the outcome, and wake the waiting threads."""
        self._content = content
        self._error = error
        self._status = status
        event = self._event
        if event is not None:
            event.set()

    def _unsettle(self) -> None:
        """Clear the outcome, because the value is created again."""
        with _lock:
            self._status, self._event = RemoteValueStatus.NOT_READY, None

    def _remedy(self) -> str:
        return "it is the future result of a scheduled function. Write value.fetch() for the result"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._status.name}>"

    def __reduce__(self) -> Any:
        raise Unsendable(f"cannot send {self!r}, which belongs to the coordinator: send its value, from fetch()")


_lock = threading.Lock()
_numbers = itertools.count()
_first_number = 0  # values with lower numbers were created before a fork, and are never set in this process


def _begin_in_child() -> None:
    global _lock, _first_number
    _lock = threading.Lock()  # the parent may have forked while another thread held the lock
    _first_number = next(_numbers)


os.register_at_fork(after_in_child=_begin_in_child)


def _resolve(token: tuple[str, Any]) -> Any:
    return token[1]  # variables are sent as their values


def _as_numpy(leaf: Any) -> Any:
    return leaf.numpy() if hasattr(leaf, "numpy") else leaf


def _exception(error: Any) -> BaseException | None:
    made: BaseException | None = error.exception() if isinstance(error, RemoteFailure) else error
    return None if made is None else made.with_traceback(None)  # a traceback would keep the frames of each raise alive
