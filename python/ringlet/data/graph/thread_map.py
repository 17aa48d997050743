"""ThreadMap: a bounded pool of threads that call one function.

A *call* is the function applied to one item: waiting, running in a thread, or finished but not yet taken. At most
`num_calls` calls and threads exist at a time. One thread calls `put` and `take`; no items are read ahead.
"""

from __future__ import annotations

import contextvars
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ringlet.data.graph.count_arguments import AUTOTUNE
from ringlet.devices.cores import visible_cores
from ringlet.errors import FailedPreconditionError
from ringlet.observe.stall_reports import stall_seconds, wait_for_threads

T = TypeVar("T")
R = TypeVar("R")

# Minimum bytes of an element for which a thread pays off: passing an element between threads takes about 20 us, and
# gathering this many bytes from rows about 50 us.
WORTH_A_THREAD_BYTES = 256 * 1024

# Timeout for joining threads when an iterator is deleted without `close`, so that a map function that hangs does not
# block the program. A thread that is still in the function stops when the function returns.
DROPPED_SECONDS = 1.0

# Message about a long wait; the stacks of the threads follow it.
WAITS = "a dataset has waited %g s for an element, which is computed by"


def count_calls(num_parallel_calls: int | None) -> int:
    """Return the number of concurrent calls: 1 for None, the number of available cores for AUTOTUNE."""
    if num_parallel_calls == AUTOTUNE:
        return visible_cores().count
    return num_parallel_calls or 1


def other_process(process: int) -> FailedPreconditionError:
    """Return the error for the use of an iterator with threads in a forked child process."""
    return FailedPreconditionError(
        f"this iterator was created in process {process}, and its threads do not exist in this forked child process. "
        "Create a new iterator in the child process."
    )


class _Call:
    __slots__ = ("context", "error", "is_done", "item", "result")

    def __init__(self, item: Any) -> None:
        self.item = item
        # The function runs in the reader's context: the current strategy, np.errstate, ...
        self.context = contextvars.copy_context()
        self.is_done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def make(self, function: Callable[[Any], Any]) -> None:
        try:
            self.result = self.context.run(function, self.item)
        except BaseException as error:
            self.error = error


class _ThreadPool:
    """State shared by the threads and the ThreadMap; threads do not reference the ThreadMap, so it can be collected."""

    def __init__(self, function: Callable[[Any], Any], num_threads: int, name: str) -> None:
        self._function = function
        self._num_threads = num_threads
        self._name = name
        self._threads: list[threading.Thread] = []
        self._num_idle = 0
        self._waiting: deque[_Call] = deque()
        # Reentrant, because a garbage collection in a thread that holds the lock may finalize the ThreadMap of this
        # pool, which shuts the pool down.
        self.lock = threading.RLock()
        self._has_work = threading.Condition(self.lock)
        self.has_result = threading.Condition(self.lock)
        self.finished: deque[_Call] = deque()  # finished calls, in the order of completion
        self.is_shut = False
        self.process = os.getpid()
        self.stall_seconds = stall_seconds()

    def put(self, call: _Call) -> None:
        """Submit a call; start a thread if more calls wait than threads are idle and fewer than `num_threads` exist."""
        with self.lock:
            self._waiting.append(call)
            if self._num_idle < len(self._waiting) and len(self._threads) < self._num_threads:
                thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                thread.start()
                self._threads.append(thread)
            else:
                self._has_work.notify()

    def _work(self) -> None:
        """Run calls until the pool shuts down; the target of a thread."""
        while (call := self._next_call()) is not None:
            call.make(self._function)
            with self.lock:
                call.is_done = True
                self.finished.append(call)
                self.has_result.notify_all()
            del call  # otherwise, this frame would keep the result alive until the next call

    def _next_call(self) -> _Call | None:
        with self.lock:
            self._num_idle += 1
            while not self._waiting and not self.is_shut:
                self._has_work.wait()
            self._num_idle -= 1
            return None if self.is_shut else self._waiting.popleft()

    def thread_ids(self) -> list[int | None]:
        return [thread.ident for thread in self._threads]

    def shut(self, timeout_seconds: float | None) -> None:
        """Stop the threads after their current calls; wait up to `timeout_seconds` for each thread."""
        if os.getpid() != self.process:
            return  # a forked child process has no threads, and its copy of the lock may stay locked
        with self.lock:
            self.is_shut = True
            self._waiting.clear()
            self.finished.clear()
            threads = [thread for thread in self._threads if thread is not threading.current_thread()]
            self._has_work.notify_all()
            self.has_result.notify_all()
        for thread in threads:
            thread.join(timeout_seconds)


class ThreadMap(Generic[T, R]):
    """Pool of up to `num_calls` threads that call a function; the caller must not `put` an item if `is_full`.

    Threads start on demand. They stop at `close`, when the object is deleted, and at the exit of the interpreter. The
    function runs in the context (`contextvars`) of the caller of `put`. `take` returns results in the order of the
    items or, unless `is_ordered`, of completion.
    """

    def __init__(
        self, function: Callable[[T], R], num_calls: int, is_ordered: bool = True, name: str = "ringlet-calls"
    ) -> None:
        self._num_calls = num_calls
        self._is_ordered = is_ordered
        self._calls: deque[_Call] = deque()  # calls whose results were not taken yet
        self._pool = _ThreadPool(function, num_calls, name)
        # Runs when the object is deleted and at exit; daemon threads do not block the exit.
        self._finalizer = weakref.finalize(self, self._pool.shut, DROPPED_SECONDS)

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def is_full(self) -> bool:
        """Whether a result must be taken before another item can be put."""
        return len(self._calls) >= self._num_calls

    def items(self) -> list[T]:
        """Return the items whose results were not taken, in order."""
        return [call.item for call in self._calls]

    def put(self, item: T) -> None:
        """Start a call; raise FailedPreconditionError in a forked child of the process that created the object."""
        if os.getpid() != self._pool.process:
            raise other_process(self._pool.process)
        call = _Call(item)
        self._calls.append(call)
        self._pool.put(call)

    def take(self) -> R:
        """Return the next result, or raise its exception; raise StopIteration if no call is pending."""
        call = self._wait()
        # The traceback of an error references frames and their variables. If one of these variables referenced the
        # error, only a garbage collection would delete this object and its threads.
        error, call.error = call.error, None
        if error is None:
            result: R = call.result
            return result
        try:
            raise error
        finally:
            del error

    def _wait(self) -> _Call:
        pool = self._pool
        if os.getpid() != pool.process:
            raise other_process(pool.process)
        with pool.lock:
            while not pool.is_shut and self._calls:
                if self._is_ordered and self._calls[0].is_done:
                    pool.finished.clear()
                    return self._calls.popleft()
                if not self._is_ordered and pool.finished:
                    call = pool.finished.popleft()
                    self._calls.remove(call)
                    return call
                wait_for_threads(pool.has_result.wait, pool.stall_seconds, WAITS, pool.thread_ids)
        raise StopIteration

    def close(self) -> None:
        """Stop the threads after their current calls; results that were not taken are discarded."""
        self._calls.clear()
        if self._finalizer.detach() is not None:
            self._pool.shut(None)

    def __enter__(self) -> ThreadMap[T, R]:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
