"""Closure queue: the queued closures, the number in flight, and the first error."""

from __future__ import annotations

import collections
import copy
import heapq
import threading
from collections.abc import Callable, Iterable
from typing import Any

from ringlet.coordinator.closures import Closure
from ringlet.coordinator.remote_value import RemoteFailure
from ringlet.errors.exception_notes import add_note

# Maximum number of queued closures, as in TensorFlow.
MOST_QUEUED = 256 * 1024


class ClosureQueue:
    """A thread-safe queue of closures, to which `put` adds only while it holds fewer than `most_queued`.

    A closure is queued, then in flight on a worker, then finished, failed, cancelled, or queued again at its former
    position. The first error is kept until `put`, `join` or `is_done` raises it. Before they raise it, these methods
    wait for the closures in flight (workers cancel them if possible), cancel queued closures, and clear the error. The
    error of `end` is permanent. `on_work` is called, with the lock held, after a closure is put, and before closures in
    flight are waited for because of an error.
    """

    def __init__(self, on_work: Callable[[], None], most_queued: int = MOST_QUEUED) -> None:
        self._on_work = on_work
        self._most_queued = most_queued
        # Held by join(), so that closures scheduled by other threads do not prolong the call.
        self._entrance = threading.Lock()
        self._lock = threading.Lock()
        self._has_changed = threading.Condition(self._lock)
        self._queued: collections.deque[Closure] = collections.deque()
        self._returned: list[Closure] = []  # a heap; these closures precede all queued closures
        self._num_in_flight = 0
        self._num_waiting = 0
        self._error: Any = None
        self._final: BaseException | None = None
        self.is_cancelling = False

    def __len__(self) -> int:
        return len(self._queued) + len(self._returned)

    # --- for the scheduling threads -----------------------------------------------------------------------------------

    def put(self, closure: Closure) -> None:
        """Queue a closure; block while the queue is full, or `join` runs in another thread.

        After an error, cancel the closure and raise the error.
        """
        with self._entrance, self._lock:
            try:
                while self._has_error or len(self) >= self._most_queued:
                    self._wait_until(lambda: self._has_error or len(self) < self._most_queued)
                    self._raise_error()
            except BaseException:
                closure.cancel()
                raise
            self._queued.append(closure)
            self._on_work()

    def join(self) -> None:
        """Wait until no closure is queued or in flight, or an error is recorded; raise the error."""
        with self._entrance, self._lock:
            self._wait_until(lambda: self._has_error or self._is_empty)
            self._raise_error()

    def is_done(self) -> bool:
        """Return whether no closure is queued or in flight; raise the same errors as `join`."""
        with self._lock:
            self._raise_error()
            return self._is_empty

    def check_open(self) -> None:
        """Raise the error of `end`, if it was called."""
        with self._lock:
            if self._final is not None:
                raise copy.copy(self._final)

    # --- for the dispatcher -------------------------------------------------------------------------------------------

    def take(self, is_wanted: Callable[[Closure], bool], most: int) -> list[Closure]:
        """Take up to `most` closures, ending before the first that `is_wanted` rejects; none while cancelling."""
        taken: list[Closure] = []
        with self._lock:
            while len(taken) < most and not self.is_cancelling and len(self):
                closure = self._returned[0] if self._returned else self._queued[0]
                if not is_wanted(closure):
                    break
                taken.append(heapq.heappop(self._returned) if self._returned else self._queued.popleft())
            self._num_in_flight += len(taken)
            if taken and self._num_waiting:
                self._has_changed.notify_all()
        return taken

    def finish(self, count: int) -> None:
        """Record that `count` closures are no longer in flight."""
        with self._lock:
            self._land(count)

    def fail(self, error: Any) -> None:
        """Record that a closure in flight has failed; keep its error, unless an earlier error is kept."""
        with self._lock:
            if self._error is None:
                self._error = error
            self._land(1)
            self._has_changed.notify_all()

    def put_back(self, closures: Iterable[Closure]) -> None:
        """Queue closures in flight again, at their former positions; while cancelling or after `end`, cancel them."""
        with self._lock:
            for closure in closures:
                if self.is_cancelling or self._final is not None:
                    closure.cancel()
                else:
                    heapq.heappush(self._returned, closure)
                self._land(1)

    def end(self, error: BaseException, error_of_closures: BaseException) -> None:
        """Keep `error` permanently, fail queued closures with `error_of_closures`, and ignore closures in flight."""
        with self._lock:
            # A copy, because the traceback of a raised exception would keep the coordinator alive.
            self._final = copy.copy(error)
            self._on_work = lambda: None  # no closure is taken after end()
            self._cancel_queued(error_of_closures)
            self._num_in_flight = 0
            self._has_changed.notify_all()

    # --- with the lock held -------------------------------------------------------------------------------------------

    @property
    def _is_empty(self) -> bool:
        return not len(self) and not self._num_in_flight

    @property
    def _has_error(self) -> bool:
        return self._error is not None or self._final is not None

    def _land(self, count: int) -> None:
        # After end() the count is 0, and closures may still return.
        self._num_in_flight = max(self._num_in_flight - count, 0)
        if not self._num_in_flight and self._num_waiting:
            self._has_changed.notify_all()

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        self._num_waiting += 1
        try:
            self._has_changed.wait_for(is_so)
        finally:
            self._num_waiting -= 1

    def _raise_error(self) -> None:
        """If an error is kept, wait for closures in flight, cancel queued closures, clear the error and raise it."""
        # One thread at a time: closures queued after the error was raised must not be cancelled.
        self._wait_until(lambda: not self.is_cancelling)
        if not self._has_error:
            return
        try:
            self.is_cancelling = True
            self._on_work()
            self._wait_until(lambda: not self._num_in_flight or self._final is not None)
            self._cancel_queued(None)
        finally:
            self.is_cancelling = False
            self._has_changed.notify_all()
        error, self._error = self._error, None
        if self._final is not None:
            raise copy.copy(self._final)
        if isinstance(error, RemoteFailure):
            worker, error = error.worker, error.exception()
            add_note(error, f"raised by a function scheduled earlier, on {worker}")
        raise error.with_traceback(None)

    def _cancel_queued(self, error: BaseException | None) -> None:
        for closure in [*self._returned, *self._queued]:
            if error is None:
                closure.cancel()
            else:
                closure.fail(error)
        self._returned.clear()
        self._queued.clear()
