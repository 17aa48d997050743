"""Calls of one function in several threads: bounded, in order, and over when they are closed.

A *call* is one item on its way: waiting, at work in a thread, or done and waiting to be taken. There are at most
`num_calls` of them, and as many threads. Who puts and takes is one thread; nothing here reads ahead by itself.
"""

from __future__ import annotations

import contextvars
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ringlet.data.operations.counts import AUTOTUNE
from ringlet.devices.cores import visible_cores
from ringlet.errors import FailedPreconditionError

__all__ = ["DROPPED_SECONDS", "WORTH_A_THREAD_BYTES", "Calls", "count_calls", "other_process"]

T = TypeVar("T")
R = TypeVar("R")

# Handing an element from one thread to another takes some 20 us, and gathering this many bytes from rows some 50 us:
# less is made sooner than it is handed over.
WORTH_A_THREAD_BYTES = 256 * 1024

# How long to wait for threads when an iterator is not closed but dropped: a dropped iterator must not hang a program
# whose map function does, and a thread that is still in that function ends with it.
DROPPED_SECONDS = 1.0


def count_calls(num_parallel_calls: int | None) -> int:
    """Give how many calls may run at once: one for None, as many as the process has cores for AUTOTUNE.

    Examples
    --------
    >>> count_calls(None), count_calls(3), count_calls(AUTOTUNE) >= 1
    (1, 3, True)
    """
    if num_parallel_calls == AUTOTUNE:
        return visible_cores().count
    return num_parallel_calls or 1


def other_process(process: int) -> FailedPreconditionError:
    """Give the error of an iterator with threads that is used in a forked child of its process."""
    return FailedPreconditionError(
        f"this iterator belongs to process {process}, and its thread stayed there when that process was forked. Make a "
        "new iterator here."
    )


class _Call:
    """One item on its way."""

    __slots__ = ("context", "error", "is_done", "item", "result")

    def __init__(self, item: Any) -> None:
        self.item = item
        # The function sees what the reader set: the current strategy, np.errstate, ...
        self.context = contextvars.copy_context()
        self.is_done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def make(self, function: Callable[[Any], Any]) -> None:
        try:
            self.result = self.context.run(function, self.item)
        except BaseException as error:
            self.error = error


class _Team:
    """What threads and reader share; the threads must not know the reader, or dropping it would never be seen."""

    def __init__(self, function: Callable[[Any], Any], num_threads: int, name: str) -> None:
        self._function = function
        self._num_threads = num_threads
        self._name = name
        self._threads: list[threading.Thread] = []
        self._num_idle = 0
        self._waiting: deque[_Call] = deque()
        # Reentrant: a garbage collection inside may drop another reader, or even this one, and shut its team.
        self.lock = threading.RLock()
        self._has_work = threading.Condition(self.lock)
        self.has_result = threading.Condition(self.lock)
        self.finished: deque[_Call] = deque()  # in the order in which they were done
        self.is_shut = False
        self.process = os.getpid()

    def put(self, call: _Call) -> None:
        """Have a thread make a call; start one where none is free."""
        with self.lock:
            self._waiting.append(call)
            if self._num_idle < len(self._waiting) and len(self._threads) < self._num_threads:
                thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                thread.start()
                self._threads.append(thread)
            else:
                self._has_work.notify()

    def _work(self) -> None:
        """Make one call after another; the body of a thread."""
        while (call := self._next_call()) is not None:
            call.make(self._function)
            with self.lock:
                call.is_done = True
                self.finished.append(call)
                self.has_result.notify_all()
            del call  # or this frame would keep it alive until the next one is there

    def _next_call(self) -> _Call | None:
        with self.lock:
            self._num_idle += 1
            while not self._waiting and not self.is_shut:
                self._has_work.wait()
            self._num_idle -= 1
            return None if self.is_shut else self._waiting.popleft()

    def shut(self, timeout_seconds: float | None) -> None:
        """End the threads; those at work finish their calls first."""
        if os.getpid() != self.process:
            return  # a forked child has no threads, and its copy of the lock may be held for ever
        with self.lock:
            self.is_shut = True
            self._waiting.clear()
            self.finished.clear()
            threads = [thread for thread in self._threads if thread is not threading.current_thread()]
            self._has_work.notify_all()
            self.has_result.notify_all()
        for thread in threads:
            thread.join(timeout_seconds)


class Calls(Generic[T, R]):
    """Calls of a function in threads, at most `num_calls` on their way.

    The threads start with the items that need them. They end with `close`, when the object is dropped, and at the exit
    of the interpreter.

    Parameters
    ----------
    function : callable
        Takes an item and gives a result. It runs in the context (`contextvars`) in which its item was put.
    num_calls : int
    is_ordered : bool, default True
        Whether results come in the order of their items; otherwise as they are done.
    name : str, optional
        Of the threads.

    Examples
    --------
    >>> with Calls(lambda x: x * x, 2) as calls:
    ...     calls.put(3)
    ...     calls.put(4)
    ...     print(calls.is_full, calls.items(), calls.take(), calls.take())
    True [3, 4] 9 16
    """

    __slots__ = ("__weakref__", "_calls", "_finalizer", "_is_ordered", "_num_calls", "_team")

    def __init__(
        self, function: Callable[[T], R], num_calls: int, is_ordered: bool = True, name: str = "ringlet-calls"
    ) -> None:
        self._num_calls = num_calls
        self._is_ordered = is_ordered
        self._calls: deque[_Call] = deque()  # all that were put and not taken
        self._team = _Team(function, num_calls, name)
        # Runs when this object is dropped, and at exit: the threads are daemons, so that exit comes that far.
        self._finalizer = weakref.finalize(self, self._team.shut, DROPPED_SECONDS)

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def is_full(self) -> bool:
        """Whether a result must be taken before another item is put."""
        return len(self._calls) >= self._num_calls

    def items(self) -> list[T]:
        """Give the items whose results were not taken, in their order."""
        return [call.item for call in self._calls]

    def put(self, item: T) -> None:
        """Start a call.

        Raises
        ------
        FailedPreconditionError
            In a forked child of the process that made the object.
        """
        if os.getpid() != self._team.process:
            raise other_process(self._team.process)
        call = _Call(item)
        self._calls.append(call)
        self._team.put(call)

    def take(self) -> R:
        """Wait for the next result.

        Raises
        ------
        Exception
            What the function raised, in the place of its result.
        StopIteration
            If no call is on its way, or another thread closed the object.
        """
        call = self._wait()
        # The traceback of an error holds the frames it went through, and so whatever they know: nothing of that may
        # know the error, or only a garbage collection would drop this object and its threads.
        error, call.error = call.error, None
        if error is None:
            result: R = call.result
            return result
        try:
            raise error
        finally:
            del error

    def _wait(self) -> _Call:
        team = self._team
        if os.getpid() != team.process:
            raise other_process(team.process)
        with team.lock:
            while not team.is_shut and self._calls:
                if self._is_ordered and self._calls[0].is_done:
                    team.finished.clear()
                    return self._calls.popleft()
                if not self._is_ordered and team.finished:
                    call = team.finished.popleft()
                    self._calls.remove(call)
                    return call
                team.has_result.wait()
        raise StopIteration

    def close(self) -> None:
        """End the threads, waiting for the calls that they are making; results that were not taken are lost."""
        self._calls.clear()
        if self._finalizer.detach() is not None:
            self._team.shut(None)

    def __enter__(self) -> Calls[T, R]:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
