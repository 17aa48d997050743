"""Cancellation checks for functions that run at the request of another process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

__all__ = ["check_cancelled", "checked_by"]

_check: ContextVar[Callable[[], None] | None] = ContextVar("ringlet_cancellation", default=None)


def check_cancelled() -> None:
    """Raise CancelledError if the running function was cancelled; fast enough for every access to a variable."""
    check = _check.get()
    if check is not None:
        check()


@contextlib.contextmanager
def checked_by(check: Callable[[], None]) -> Iterator[None]:
    """Return a context manager in which :func:`check_cancelled` calls `check`."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)
