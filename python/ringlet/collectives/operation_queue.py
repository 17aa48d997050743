"""Queue of the asynchronous calls of one rank, which run in order in a separate thread."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing.util
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from ringlet import _core
from ringlet.errors import FailedPreconditionError
from ringlet.observe import trace_hook

_log = logging.getLogger(__name__)
_LAST_SECONDS = 1.0  # limit for calls in progress when the interpreter exits
_live: weakref.WeakSet[OperationQueue] = weakref.WeakSet()
_generation = 0  # number of forks so far: comparing it is cheaper than os.getpid()
_registered: int | None = None


class Finished:
    """The future of a call that is already done; cheaper than `concurrent.futures.Future`."""

    __slots__ = ("_error", "_value")

    def __init__(self, value: Any, error: BaseException | None = None) -> None:
        self._value = value
        self._error = error

    def result(self, timeout: float | None = None) -> Any:
        """Return the result, or raise the error."""
        if self._error is not None:
            raise self._error
        return self._value

    def done(self) -> bool:
        """Return True."""
        return True

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the error; None after success."""
        return self._error

    def add_done_callback(self, call: Callable[[Finished], object]) -> None:
        """Call `call` with this future immediately."""
        call(self)


class OperationQueue:
    """The calls of one member: `run` starts a call; code that bypasses `run` must first call `wait_for_turn`.

    The queue itself holds no reference to the member, but its pending calls do.
    """

    def __init__(self, group: _core.Group, rank: int) -> None:
        self._group: _core.Group | None = group
        self._rank = rank
        # Converts a call's error to the error that the caller receives.
        self.as_error: Callable[[BaseException], BaseException] = lambda error: error
        self._generation = _generation
        self._queue: queue.SimpleQueue[tuple[str, Future[Any], Callable[[], Any], int] | None] = queue.SimpleQueue()
        self._turn = threading.RLock()  # held while a call runs
        self._runner = 0  # id of the thread that holds the lock
        self._lock = threading.Lock()
        self._unfinished: dict[Future[Any], str] = {}
        self._is_closed = False
        self._thread: threading.Thread | None = None
        _live.add(self)
        _finish_at_exit()

    def run(self, call: Callable[[], Any], name: str, is_async: bool = True) -> Future[Any] | Finished:
        """Start a call; without `is_async`, the call is done on return."""
        if self._generation != _generation:
            self._turn = threading.RLock()  # the parent's lock may never be released in this process
            return self._run_now(call)  # the core raises an error, because this process was forked
        if not (is_async or self._unfinished) or threading.current_thread() is self._thread:
            return self._run_now(call)
        done: Future[Any] = Future()
        place = _core.note_place()  # source location of the call, for the flight recorder
        with self._lock:
            if self._is_closed:  # the thread no longer takes calls
                return Finished(None, FailedPreconditionError(f"rank {self._rank} has closed its group: {_REMEDY}"))
            self._unfinished[done] = name
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="ringlet asynchronous calls", daemon=True)
                self._thread.start()
            self._queue.put((name, done, call, place))
        if not is_async:
            done.exception()  # waits until the call is done
        return done

    def wait_for_turn(self) -> None:
        """Wait for the calls that were started earlier."""
        if self._unfinished and threading.get_ident() != self._runner and self._generation == _generation:
            with self._lock:
                last = next(reversed(self._unfinished), None)
            if last is not None:
                last.exception()

    def drain(self, seconds: float | None) -> bool:
        """Accept no more calls, and wait up to `seconds` for the started calls; return False if they last longer."""
        with self._lock:
            self._is_closed = True
            self._queue.put(None)
        if self._thread is None or self._thread is threading.current_thread():
            return True
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def close(self) -> list[str]:
        """Accept no more calls, fail calls that have not begun, and return the names of all unfinished calls."""
        if self._generation != _generation:
            return []
        with self._lock:
            self._is_closed = True
            self._group = None
            names = self._names()
            waiting = []
            with contextlib.suppress(queue.Empty):
                while True:
                    waiting.append(self._queue.get_nowait())
            self._queue.put(None)
        for name, done, *_ in filter(None, waiting):
            done.set_exception(
                FailedPreconditionError(f"rank {self._rank} closed its group before its {name} began: {_REMEDY}")
            )
            del self._unfinished[done]
        return names

    def finish_at_exit(self, deadline: float) -> None:
        """Wait for the calls; after the deadline, log their names and abort the group, which ends the calls."""
        if self._generation != _generation or self.drain(max(deadline - time.monotonic(), 0)):
            return
        with self._lock:
            group, names = self._group, ", ".join(self._names())
        reason = f"rank {self._rank} exited with unfinished asynchronous calls: {names}"
        _log.error("%s. Call wait() on every asynchronous call before the program ends.", reason)
        if group is not None:
            group.abort(reason)
        self.drain(_LAST_SECONDS)

    def _names(self) -> list[str]:
        return [name for done, name in self._unfinished.items() if not done.done()]

    def _run_now(self, call: Callable[[], Any], kind: type[BaseException] = Exception) -> Finished:
        with self._turn:
            before, self._runner = self._runner, threading.get_ident()
            try:
                return Finished(call())
            except kind as error:
                return Finished(None, self.as_error(error))
            finally:
                self._runner = before

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            name, done, call, place = item
            _core.make_calls_for(place)
            if (trace := trace_hook.current) is not None:
                call = trace.timed(name, "asynchronous", call)
            outcome = self._run_now(call, BaseException)  # the error is stored in the future
            error = outcome.exception()
            done.set_result(outcome.result()) if error is None else done.set_exception(error)
            with self._lock:
                self._unfinished.pop(done, None)
            del item, done, call, trace, outcome, error  # frees the arrays before the thread waits


_REMEDY = "call wait() on each asynchronous call before close() or the end of the with block."


def _finish_at_exit() -> None:
    """Register the exit handler of this process; unlike `atexit`, it also runs in processes of multiprocessing."""
    global _registered
    if _registered != _generation:
        _registered = _generation
        multiprocessing.util.Finalize(None, _finish_all, exitpriority=0)


def _note_fork() -> None:
    global _generation
    _generation += 1


os.register_at_fork(after_in_child=_note_fork)


def _finish_all() -> None:
    deadline = time.monotonic() + _LAST_SECONDS
    for operations in list(_live):
        operations.finish_at_exit(deadline)
