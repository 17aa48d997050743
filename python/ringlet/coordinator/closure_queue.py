"""The calls that wait for a worker, those that have one, and the first error of any."""

from __future__ import annotations

import collections
import copy
import heapq
import threading
from collections.abc import Callable, Iterable
from typing import Any

from ringlet.coordinator.closures import Closure
from ringlet.coordinator.remote_value import RemoteFailure

__all__ = ["MOST_QUEUED", "ClosureQueue"]

# TensorFlow's number.
MOST_QUEUED = 256 * 1024


class ClosureQueue:
    """A queue of closures, which any thread may use.

    A closure is queued, then in flight (some worker has it), then finished, failed, cancelled, or queued again at its
    old place. The first error is kept until `put`, `join` or `is_done` raises it: each waits for what is in flight,
    which workers give up where they can, cancels what is queued, and forgets the error. An error that is `final` is
    kept for good.

    Parameters
    ----------
    on_work : callable
        Is called, with the lock held, when there may be something to take or to call back.
    most_queued : int
        How many may wait: `put` waits for room.
    """

    def __init__(self, on_work: Callable[[], None], most_queued: int = MOST_QUEUED) -> None:
        self._on_work = on_work
        self._most_queued = most_queued
        # Whoever joins does not wait for what others schedule meanwhile: they wait.
        self._entrance = threading.Lock()
        self._lock = threading.Lock()
        self._has_changed = threading.Condition(self._lock)
        self._queued: collections.deque[Closure] = collections.deque()
        self._returned: list[Closure] = []  # a heap: all of them were scheduled before those that are queued
        self._num_in_flight = 0
        self._num_waiting = 0
        self._error: Any = None
        self._final: BaseException | None = None
        self.is_cancelling = False

    def __len__(self) -> int:
        return len(self._queued) + len(self._returned)

    # --- for who schedules --------------------------------------------------------------------------------------------

    def put(self, closure: Closure) -> None:
        """Queue a closure, waiting for room.

        Raises
        ------
        Exception
            The error that is kept. The closure is cancelled then.
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
        """Wait until nothing is queued and nothing in flight.

        Raises
        ------
        Exception
            The error that is kept, as soon as there is one.
        """
        with self._entrance, self._lock:
            self._wait_until(lambda: self._has_error or self._is_empty)
            self._raise_error()

    def is_done(self) -> bool:
        """Return whether nothing is queued and nothing in flight; raises as `join`."""
        with self._lock:
            self._raise_error()
            return self._is_empty

    def check_open(self) -> None:
        """Raise the error that is kept for good, if there is one."""
        with self._lock:
            if self._final is not None:
                raise copy.copy(self._final)

    # --- for who hands them to workers --------------------------------------------------------------------------------

    def take(self, is_wanted: Callable[[Closure], bool], most: int) -> list[Closure]:
        """Take the next closures, as long as they are wanted. They are in flight from now on."""
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
        """Heed that closures in flight have returned."""
        with self._lock:
            self._land(count)

    def fail(self, error: Any) -> None:
        """Heed that a closure in flight has raised: an exception, or a RemoteFailure."""
        with self._lock:
            if self._error is None:
                self._error = error
            self._land(1)
            self._has_changed.notify_all()

    def put_back(self, closures: Iterable[Closure]) -> None:
        """Queue closures in flight again, at their old places; cancel them if all are being cancelled."""
        with self._lock:
            for closure in closures:
                if self.is_cancelling or self._final is not None:
                    closure.cancel()
                else:
                    heapq.heappush(self._returned, closure)
                self._land(1)

    def end(self, error: BaseException, error_of_closures: BaseException) -> None:
        """Keep an error for good; what is queued fails with the other one. Nothing is in flight from now on."""
        with self._lock:
            # Never raised itself: its traceback would lead from the thread that has this queue to the coordinator.
            self._final = copy.copy(error)
            self._on_work = lambda: None  # nobody takes anything any more
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
        # After the end they are counted no more, and may still land.
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
        """Raise the error if there is one: wait for what is in flight, cancel the rest, and forget the error."""
        # While another thread does that, this one waits: what is put after the error was raised is not to be cancelled.
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
        raise (error.exception() if isinstance(error, RemoteFailure) else error).with_traceback(None)

    def _cancel_queued(self, error: BaseException | None) -> None:
        for closure in [*self._returned, *self._queued]:
            if error is None:
                closure.cancel()
            else:
                closure.fail(error)
        self._returned.clear()
        self._queued.clear()
