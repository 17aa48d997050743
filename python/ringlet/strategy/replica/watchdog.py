"""Time limits of collective calls, and delayed calls, all kept by one thread."""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType

from ringlet.errors import CollectiveAborted, DeadlineExceededError


class Watchdog:
    """A context manager that aborts a group when a replica has waited too long.

    After `seconds` (0: no limit), `abort` is called in another thread with the result of `reason`, and makes every call
    of the group raise `CollectiveAborted`; the ``with`` statement then raises DeadlineExceededError instead.
    """

    __slots__ = ("_abort", "_entry", "_reason", "_seconds", "_text")

    def __init__(self, seconds: float, abort: Callable[[str], None], reason: Callable[[], str]) -> None:
        self._seconds = seconds
        self._abort = abort
        self._reason = reason
        self._entry: _Entry | None = None
        self._text: str | None = None

    def __enter__(self) -> Watchdog:
        if self._seconds:
            self._entry = _timer.add(time.monotonic() + self._seconds, self._expire)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._entry is None:
            return
        _timer.remove(self._entry)
        if self._text is not None and (error is None or isinstance(error, CollectiveAborted)):
            raise DeadlineExceededError(self._text) from None  # replaces `error`, which the abort caused

    def _expire(self) -> None:
        text = self._reason()
        self._abort(text)
        self._text = text


class _Entry:
    """One deadline; its action, which may keep much memory alive, is dropped once the deadline is over."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action


class _Timer:
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
        # The lock ensures that a deadline that is removed in time never runs its action.
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
                    self._expire(heapq.heappop(self._entries)[2])

    def _expire(self, entry: _Entry) -> None:
        action, entry.action = entry.action, None
        if action is not None:
            action()


_timer = _Timer()


def call_later(seconds: float, action: Callable[[], None]) -> None:
    """Schedule a call in another thread; `action` must be fast and not raise, because it delays other deadlines."""
    _timer.add(time.monotonic() + seconds, action)


def _after_fork_in_child() -> None:
    global _timer
    _timer = _Timer()  # the previous timer's thread exists only in the parent


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
