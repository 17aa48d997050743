"""Report of an uncaught exception to the other workers, which raise an error that describes the exception."""

from __future__ import annotations

import contextlib
import sys
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from ringlet.strategy.replica.error_selection import one_line

_PACKAGE = str(Path(__file__).resolve().parents[2])


class Abortable(Protocol):
    """Interface of objects that an uncaught exception aborts."""

    def abort(self, reason: str) -> None:
        """Make all workers fail with this reason."""


_abortables: weakref.WeakSet[Any] = weakref.WeakSet()
_previous: list[Callable[..., Any]] = []


def abort_on_crash(group: Abortable) -> None:
    """Abort a group when an uncaught exception ends this process; the group is not kept alive."""
    _abortables.add(group)
    if not _previous:
        _previous.append(sys.excepthook)
        sys.excepthook = _hook


def broadcast_crash(error: BaseException) -> None:
    """Abort all registered groups because of an exception; for programs that handle uncaught exceptions themselves."""
    for group in list(_abortables):
        # An error here, or a second Ctrl-C, must not hide the exception that ends the process.
        with contextlib.suppress(Exception, KeyboardInterrupt):
            group.abort(describe_crash(error))


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    broadcast_crash(error)  # first, because the other workers wait, and printing a traceback may take long
    _previous[0](kind, error, trace)


def describe_crash(error: BaseException) -> str:
    """Describe an exception and its line in the program, to complete the sentence "worker 1 ..."."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
    last = own[-1] if own else None
    where = f" in {last.name} ({last.filename}:{last.lineno})" if last else ""
    return f"raised {one_line(error)}{where}"
