"""What a process that an exception ends tells the other workers: which one, and where."""

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

__all__ = ["described", "say_last_words", "tell_others"]

_PACKAGE = str(Path(__file__).resolve().parents[1])


class Listener(Protocol):
    """Who wants to hear last words."""

    def abort(self, reason: str) -> None:
        """Tell the others."""


_listeners: weakref.WeakSet[Any] = weakref.WeakSet()
_previous: list[Callable[..., Any]] = []


def say_last_words(listener: Listener) -> None:
    """Have somebody told when an exception that nobody catches ends this process.

    Parameters
    ----------
    listener : Listener
        Not kept alive.
    """
    _listeners.add(listener)
    if not _previous:
        _previous.append(sys.excepthook)
        sys.excepthook = _hook


def tell_others(error: BaseException) -> None:
    """Have everybody told now; for programs that show the exception that ends them by themselves.

    Parameters
    ----------
    error : BaseException
    """
    for listener in list(_listeners):
        with contextlib.suppress(Exception):  # the exception that ends the process is the one to show
            listener.abort(described(error))


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    tell_others(error)  # first of all: the others wait, and a traceback may take its time
    _previous[0](kind, error, trace)


def described(error: BaseException) -> str:
    """Say which exception it was, and at which line of the program.

    Parameters
    ----------
    error : BaseException

    Returns
    -------
    str
        Completes "worker 1 ...".

    Examples
    --------
    >>> described(KeyError("weights"))
    "raised KeyError: 'weights'"
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
    last = own[-1] if own else None
    where = f" in {last.name} ({last.filename}:{last.lineno})" if last else ""
    return f"raised {one_line(error)}{where}"
