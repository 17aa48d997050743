"""Exclusive use of a strategy that spans several processes: one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

__all__ = ["ThreadExclusion"]


class ThreadExclusion:
    """A re-entrant context manager for one thread at a time; others, whose order is undefined, get an error."""

    __slots__ = ("_depth", "_holder", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._holder: dict[str, int] = {}
        self._depth = 0

    def __enter__(self) -> ThreadExclusion:
        me = threading.get_ident()
        # One atomic operation, so that only one of two concurrent threads succeeds.
        holder = self._holder.setdefault("thread", me)
        if holder != me:
            raise RuntimeError(
                f"two threads use {self._what} at the same time, {_name(me)!r} and {_name(holder)!r}: all workers "
                "must make their calls in the same order, but the order of concurrent threads is undefined. Call it "
                "from one thread, or make a strategy for each thread, in the same order on every worker"
            )
        self._depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._depth -= 1
        if self._depth <= 0:
            self._depth = 0
            self._holder.clear()

    @contextmanager
    def transferred(self) -> Iterator[None]:
        """Make the calling thread the holder until the block ends; the previous holder waits meanwhile."""
        holder = self._holder.get("thread")
        if holder is None:
            raise AssertionError("no thread holds the strategy")
        self._holder["thread"] = threading.get_ident()
        try:
            yield
        finally:
            self._holder["thread"] = holder


def _name(thread: int) -> str:
    found = next((each.name for each in threading.enumerate() if each.ident == thread), None)
    return found or f"thread {thread}"
