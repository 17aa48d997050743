"""Deadlines of single calls, inside of a run whose own time-out is longer."""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType

from ringlet.errors import CollectiveAborted, DeadlineExceededError

__all__ = ["Deadline", "call_later"]


class Deadline:
    """A context manager that ends a group in which a replica has waited too long.

    Parameters
    ----------
    seconds : float
        0 for never.
    abort : callable
        Takes the reason, and makes every call of the group raise `CollectiveAborted`. It is called in another thread.
    reason : callable
        Gives the reason.

    Raises
    ------
    DeadlineExceededError
        On leaving, if the time was over before.

    Examples
    --------
    >>> with Deadline(60.0, print, lambda: "too late"):
    ...     pass
    """

    __slots__ = ("_abort", "_entry", "_reason", "_seconds", "_text")

    def __init__(self, seconds: float, abort: Callable[[str], None], reason: Callable[[], str]) -> None:
        self._seconds = seconds
        self._abort = abort
        self._reason = reason
        self._entry: _Entry | None = None
        self._text: str | None = None

    def __enter__(self) -> Deadline:
        if self._seconds:
            self._entry = _watch.add(time.monotonic() + self._seconds, self._expire)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._entry is None:
            return
        _watch.remove(self._entry)
        if self._text is not None and (error is None or isinstance(error, CollectiveAborted)):
            raise DeadlineExceededError(self._text) from None  # a failure of its own, not one that follows from others

    def _expire(self) -> None:
        text = self._reason()
        self._abort(text)
        self._text = text


class _Entry:
    """One deadline; without an action once it is over, because what that refers to may be much."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action


class _Watch:
    """One thread for all deadlines of the process: a thread for each call would cost more than most calls."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._entries: list[tuple[float, int, _Entry]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def add(self, when: float, action: Callable[[], None]) -> _Entry:
        entry = _Entry(action)
        with self._changed:
            is_first = not self._entries or when < self._entries[0][0]
            heapq.heappush(self._entries, (when, next(self._numbers), entry))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ringlet-deadlines", daemon=True)
                self._thread.start()
            elif is_first:
                self._changed.notify()
        return entry

    def remove(self, entry: _Entry) -> None:
        # Under the lock: whoever leaves before the time is over is not ended by it.
        with self._changed:
            entry.action = None
            while self._entries and self._entries[0][2].action is None:
                heapq.heappop(self._entries)

    def _run(self) -> None:
        with self._changed:
            while True:
                if not self._entries:
                    self._changed.wait()
                elif (left := self._entries[0][0] - time.monotonic()) > 0:
                    self._changed.wait(left)
                else:
                    self._take(heapq.heappop(self._entries)[2])

    def _take(self, entry: _Entry) -> None:
        action, entry.action = entry.action, None
        if action is not None:
            action()


_watch = _Watch()


def call_later(seconds: float, action: Callable[[], None]) -> None:
    """Have a function called after some time, in another thread.

    Parameters
    ----------
    seconds : float
    action : callable
        Quick, and raises nothing: all deadlines of the process wait for it.

    Examples
    --------
    >>> called = threading.Event()
    >>> call_later(0.001, called.set)
    >>> called.wait(10)
    True
    """
    _watch.add(time.monotonic() + seconds, action)


def _after_fork_in_child() -> None:
    global _watch
    _watch = _Watch()  # the thread of the other one is in the parent


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
