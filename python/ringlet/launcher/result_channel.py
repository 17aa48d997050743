"""Result channel: receives the result of a worker of `ringlet.launch`."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import Any

from ringlet.ipc.pickle_codec import ParcelReader
from ringlet.ipc.remote_exception import Failure

_READINGS = 16  # maximum number of consecutive reads of one pipe, for fairness among workers
_PIPE_BYTES = 1 << 20  # larger than the default, so that large results need fewer reads


class ResultChannel:
    """Reads the result of one worker from a pipe; owns the descriptor."""

    def __init__(self, worker: int, descriptor: int) -> None:
        self.worker = worker
        self._descriptor = descriptor
        self._parcel = ParcelReader()
        self._outcome: tuple[bool, Any] | None = None
        os.set_blocking(descriptor, False)
        with contextlib.suppress(AttributeError, OSError):  # not Linux, or above the user's limit of pipe memory
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def read(self, now: float) -> bool:
        """Read available data, up to a limit; return whether more may be available."""
        return all(not self.is_complete and self._parcel.read(self._descriptor) for _ in range(_READINGS))

    def worker_ended(self, now: float) -> None:
        """Do nothing, because this channel prints no output."""

    def tick(self, now: float) -> float | None:
        """Return None, because this channel has no timed work."""
        return None

    def close(self) -> None:
        """Close the descriptor; idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def is_complete(self) -> bool:
        """Whether the whole result has arrived."""
        return self._parcel.is_complete

    @property
    def failure(self) -> Failure | None:
        """The exception that the function has raised, if any; requires that `is_complete`."""
        has_returned, value = self._read_outcome()
        return None if has_returned else value

    def value(self) -> Any:
        """Return the function's result; requires that `is_complete`, and that the function raised no exception."""
        return self._read_outcome()[1]

    def _read_outcome(self) -> tuple[bool, Any]:
        if self._outcome is None:
            self._outcome = self._parcel.value()
        return self._outcome
