"""The receiving end of what a worker of `ringlet.launch` sends back."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import Any

from ringlet.ipc.call_codec import ParcelReader
from ringlet.ipc.remote_exception import Failure
from ringlet.launcher.exit_report import follows_another

__all__ = ["ResultChannel"]

_READINGS = 16  # of a pipe in one go, so that other workers have their turn
_PIPE_BYTES = 1 << 20  # large results take fewer turns


class ResultChannel:
    """Reads the result of one worker.

    Parameters
    ----------
    worker : int
    descriptor : int
        Of the pipe; taken over.
    """

    def __init__(self, worker: int, descriptor: int) -> None:
        self.worker = worker
        self._descriptor = descriptor
        self._parcel = ParcelReader()
        self._outcome: tuple[bool, Any] | None = None
        os.set_blocking(descriptor, False)
        with contextlib.suppress(AttributeError, OSError):  # no Linux, or a user with many large pipes
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def fileno(self) -> int:
        """Give the descriptor."""
        return self._descriptor

    def read(self, now: float) -> bool:
        """Read what there is, up to a bound."""
        return all(not self.is_complete and self._parcel.read(self._descriptor) for _ in range(_READINGS))

    def worker_ended(self, now: float) -> None:
        """Nothing is left to do."""

    def tick(self, now: float) -> float | None:
        """Nothing is ever due."""
        return None

    def close(self) -> None:
        """Give the descriptor back; once is enough."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def is_complete(self) -> bool:
        """Whether the worker has said what came of its call."""
        return self._parcel.is_complete

    @property
    def failure(self) -> Failure | None:
        """The exception that the function has raised, if it has."""
        has_returned, value = self._read_outcome()
        return None if has_returned else value

    @property
    def follows(self) -> bool:
        """Whether the function failed because another worker had failed."""
        return self.failure is not None and follows_another(self.failure.text)

    def value(self) -> Any:
        """Give what the function has returned."""
        return self._read_outcome()[1]

    def _read_outcome(self) -> tuple[bool, Any]:
        if self._outcome is None:
            self._outcome = self._parcel.value()
        return self._outcome
