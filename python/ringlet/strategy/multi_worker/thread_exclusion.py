"""Who may make the calls of a strategy that has several processes: one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

__all__ = ["Turn"]


class Turn:
    """A context manager that one thread at a time may enter, as often as it likes.

    Nobody waits: workers make their calls in one order, and two threads that run at the same time have none.

    Parameters
    ----------
    what : str
        Whose calls they are, for messages.

    Raises
    ------
    RuntimeError
        On entering, while another thread is inside.

    Examples
    --------
    >>> turn = Turn("the strategy")
    >>> with turn, turn:
    ...     pass
    """

    __slots__ = ("_depth", "_holder", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._holder: dict[str, int] = {}
        self._depth = 0

    def __enter__(self) -> Turn:
        me = threading.get_ident()
        # In one instruction, so that two threads that come together do not both find nobody.
        holder = self._holder.setdefault("thread", me)
        if holder != me:
            raise RuntimeError(
                f"two threads use {self._what} at the same time, {_name(me)!r} and {_name(holder)!r}: its workers make "
                "their calls in one order, which is the same on all of them, and threads that run at the same time "
                "have none. Call it from one thread, or make a strategy for each thread, in the same order on every "
                "worker"
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
    def lent(self) -> Iterator[None]:
        """Let the calling thread act for the one that is inside, which waits meanwhile."""
        holder = self._holder.get("thread")
        if holder is None:
            raise AssertionError("nobody is inside")
        self._holder["thread"] = threading.get_ident()
        try:
            yield
        finally:
            self._holder["thread"] = holder


def _name(thread: int) -> str:
    found = next((each.name for each in threading.enumerate() if each.ident == thread), None)
    return found or f"thread {thread}"
