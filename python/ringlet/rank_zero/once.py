"""once_per_host: what one process does for all on its machine."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Any, TypeVar, overload

import numpy as np

from ringlet import context
from ringlet.errors import CollectiveAborted
from ringlet.rank_zero.ad_hoc_group import meet, naming
from ringlet.rank_zero.json_codec import from_text, to_text
from ringlet.rank_zero.process_role import local_replica, standing

__all__ = ["once_per_host"]

T = TypeVar("T")

# In how many of them a thread is: inside, each process goes by itself, as the others are not there.
_inside = threading.local()


@overload
def once_per_host(function: Callable[[], T], *, name: str = "", timeout_seconds: float | None = None) -> T: ...
@overload
def once_per_host(
    function: None = None, *, name: str = "", timeout_seconds: float | None = None
) -> AbstractContextManager[bool]: ...


def once_per_host(
    function: Callable[[], T] | None = None, *, name: str = "", timeout_seconds: float | None = None
) -> T | AbstractContextManager[bool]:
    """Have one process of each machine do something, such as a download, while the others wait.

    Every process calls this, and so does every replica if one does. They meet as processes of one job do, by
    ``TF_CONFIG``, ``RINGLET_RANK`` or the strategy; the first of those on a machine does the work. A process that is
    alone just does it, and so does one that is in such work already.

    Parameters
    ----------
    function : callable, optional
        Called without arguments, on one process; the others get what it gave: None, numbers, text, bytes, paths, and
        lists, tuples and dictionaries of these. Without a function this gives a context manager.
    name : str
        What it is, for messages. The same on all.
    timeout_seconds : float, optional
        How long the others wait for the work to be done; 0 for ever, None for the default of 600 s or
        ``RINGLET_TIMEOUT_SECONDS``. Downloads may take longer than that: say so.

    Returns
    -------
    object or context manager
        What the function gave; or, for ``with``, what lets the first process go ahead and the others go on once it is
        through. It gives True to the first process.

    Raises
    ------
    Exception
        On the process that did the work, what the function raised.
    CollectiveAborted
        On the others, with that text, at once.
    WorkerLostError
        If a process ended meanwhile.
    CollectiveMismatchError
        On all, if they call it with different names, or one of them compares values by ``checks.all_equal``.
    DeadlineExceededError
        If some did not come in time, or the work took too long; names them.
    TypeError
        If the function gave what cannot be handed over.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.once_per_host(lambda: "data/train.bin", name="download")
    'data/train.bin'
    >>> with ringlet.once_per_host(name="unpack") as is_first:
    ...     if is_first:
    ...         print("unpacking")
    unpacking
    """
    once = _Once(name, timeout_seconds)
    if function is None:
        return _OnceInReplica(once) if local_replica() is not None else once
    if local_replica() is None:
        return once.call(function)
    replica: Any = context.current()
    answer: T = replica._merge_named(_titled(name), lambda _: _Cell(once.call(function))).content
    return answer


def _titled(name: str) -> str:
    return f"once_per_host({name!r})" if name else "once_per_host"


class _Cell:
    """Keeps an answer from being taken apart for replicas."""

    __slots__ = ("content",)

    def __init__(self, content: Any) -> None:
        self.content = content


class _Once:
    """The processes of one machine, of which the first goes ahead; a context manager that gives it True."""

    def __init__(self, name: str, timeout_seconds: float | None) -> None:
        self._title, self._seconds = _titled(name), timeout_seconds
        self._member: Any = None  # None for a process that is alone
        self._answer = "null"

    def call(self, function: Callable[[], T]) -> T:
        """Give on each process what the function gave on the first one."""
        with self as is_first:
            if is_first:
                answer = function()
                self._answer = to_text(answer)  # also of a process alone: what works there shall work with others
                return answer
        heard: T = from_text(self._answer)
        return heard

    def __enter__(self) -> bool:
        depth = getattr(_inside, "depth", 0)
        neighbours = standing().neighbours
        if depth == 0 and len(neighbours) > 1:
            self._member = meet(self._title, neighbours, self._seconds)
        is_first = self._member is None or self._member.rank == 0
        if not is_first:
            self._hear()
        _inside.depth = depth + 1
        return is_first

    def _hear(self) -> None:
        with naming(self._title), self._member:
            told = json.loads(self._member.broadcast(root=0).tobytes())
        if "error" in told:
            raise CollectiveAborted(f"{self._title} has failed: {told['error']}")
        self._answer = told["answer"]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _inside.depth -= 1
        if self._member is None or self._member.rank != 0:
            return
        if error is None:
            with naming(self._title), self._member:
                self._tell({"answer": self._answer})
        else:
            with suppress(ConnectionError, RuntimeError, TimeoutError), self._member:  # the work's own error counts
                self._tell({"error": f"{standing().name} (pid {os.getpid()}) raised {_described(error)}"})

    def _tell(self, message: dict[str, str]) -> None:
        self._member.broadcast(np.frombuffer(json.dumps(message).encode("ascii"), np.uint8))


def _described(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class _OnceInReplica:
    """The same for replicas: the first of each process goes on as its process does, the others wait for it."""

    def __init__(self, once: _Once) -> None:
        self._once, self._is_first = once, False
        self._replica: Any = context.current()

    def __enter__(self) -> bool:
        if self._replica.local_replica_id == 0:
            self._is_first = self._once.__enter__()
        if not self._is_first:
            self._meet()
        return self._is_first

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._replica.local_replica_id == 0:
            self._once.__exit__(kind, error, trace)
        if self._is_first and error is None:
            self._meet()

    def _meet(self) -> None:
        self._replica._merge_named(self._once._title, lambda _: None)
