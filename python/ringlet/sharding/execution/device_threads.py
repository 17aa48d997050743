"""Device threads: run small work in the calling thread, and larger work in one thread for each core.

All callers of the process share one pool of threads. A *job* is the work of some devices, which threads claim in order;
a caller claims devices of its own job until none is left, so it needs no free thread, and calls may be nested.
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from ringlet.devices import visible_cores
from ringlet.devices.blas_threads import blas_limiter
from ringlet.errors.exception_notes import add_note
from ringlet.observe.stacks import location
from ringlet.sharding.memory_modes import is_planning

# Waking helper threads and waiting for them takes about 40 us; in that time one core does simple arithmetic on half of
# INLINE_BYTES.
INLINE_BYTES = 4 << 20

# A number of replicas that is so large that the BLAS thread limiter allows each replica one BLAS thread.
_ALL_CORES = 1 << 30

# After Ctrl-C, time to wait for threads before their work is reported on standard error.
_SILENT_SECONDS = 0.1


def on_devices(
    work: Callable[[int], object], devices: Sequence[int], bytes_per_device: int, *, is_alone: bool = False
) -> None:
    """Run the work of each device, in parallel if that is faster for `bytes_per_device` read and written.

    A device's result depends neither on the thread that computes it nor on the number of threads: BLAS is limited to
    one thread for each device, even if one thread does all the work, unless there is only one device (`is_alone`).
    Other threads run work in copies of the caller's context. Work may call this function. Raises the exception of the
    first failed device, with a note that names the device. Does nothing while planning.
    """
    in_threads(work, devices, bytes_per_device, is_alone=is_alone, note="in the work of device ")


def in_threads(
    work: Callable[[int], object], numbers: Sequence[int], bytes_each: int, *, is_alone: bool = False, note: str = ""
) -> None:
    """Call ``work(number)`` for each number, as :func:`on_devices` does; errors get a note unless `note` is empty."""
    if is_planning():
        return
    limiter, run = blas_limiter(), object()
    try:
        if not is_alone:
            limiter.enter(run, _ALL_CORES)
        if len(numbers) > 1 and bytes_each * len(numbers) > INLINE_BYTES:
            _pool.run(_Job(work, numbers, note))
        else:
            _in_turn(work, numbers, note)
    finally:
        try:
            limiter.leave(run)
        except BaseException:  # Ctrl-C may have interrupted leave(), which can be repeated
            limiter.leave(run)
            raise


def _in_turn(work: Callable[[int], object], numbers: Sequence[int], note: str) -> None:
    number = None
    try:
        for number in numbers:
            work(number)
    except Exception as error:
        # Only the innermost device of nested work is added to the error as a note.
        if note and not any(n.startswith(note) for n in getattr(error, "__notes__", ())):
            add_note(error, f"{note}{number}")
        raise


class _Job:
    """The work of one call and its outcome.

    Only helpers are counted: Ctrl-C may interrupt the caller at any point, so its exit cannot be awaited.
    """

    def __init__(self, work: Callable[[int], object], numbers: Sequence[int], note: str) -> None:
        self.numbers = numbers
        self._work, self._note = work, note
        self._places = itertools.count()
        self._errors: dict[int, BaseException] = {}
        self._lock = threading.Lock()
        self._helpers: set[int] = set()
        self._is_closed = False
        self._has_ended = threading.Event()

    def take_part(self) -> None:
        """Run devices in order until none is left, a device has failed, or the job is closed."""
        while not self._errors and not self._is_closed and (place := next(self._places)) < len(self.numbers):
            try:
                _in_turn(self._work, self.numbers[place : place + 1], self._note)
            except BaseException as error:  # raised by `finish`
                self._errors[place] = error

    def help(self) -> None:
        """Take part as a helper thread, for which `finish` waits."""
        with self._lock:
            if self._is_closed:
                return
            self._helpers.add(threading.get_ident())
        self.take_part()
        with self._lock:
            self._helpers.discard(threading.get_ident())
            if self._is_closed and not self._helpers:
                self._has_ended.set()

    def finish(self) -> None:
        """Wait for the helpers, then raise the first failed device's exception; KeyboardInterrupt has precedence."""
        self._is_closed = True
        with self._lock:
            is_busy = bool(self._helpers)
        if is_busy:
            is_interrupted = any(isinstance(error, KeyboardInterrupt) for error in list(self._errors.values()))
            try:
                self._wait(is_interrupted)
            except BaseException:  # after Ctrl-C, helpers still write to arrays; a second Ctrl-C ends the wait
                if not is_interrupted:
                    self._wait(True)
                raise
        if self._errors:
            # Ctrl-C has precedence. References to exceptions are dropped, because their frames hold arrays.
            first = min(self._errors, key=lambda place: (isinstance(self._errors[place], Exception), place))
            error = self._errors[first]
            self._errors.clear()
            try:
                raise error
            finally:
                del error

    def _wait(self, is_interrupted: bool) -> None:
        """Wait for the helpers; after Ctrl-C, print the source lines that they execute unless they end soon."""
        if is_interrupted and not self._has_ended.wait(_SILENT_SECONDS):
            busy = self._helpers.copy()
            where = "; ".join(dict.fromkeys(map(location, busy)))
            with contextlib.suppress(Exception):  # stderr may be closed
                print(
                    f"ringlet: interrupted; waiting for {len(busy)} of the threads that compute tiles, which still "
                    f"write to arrays of this call: {where}. Press Ctrl-C again to stop waiting",
                    file=sys.stderr,
                    flush=True,
                )
        self._has_ended.wait()


class _Pool:
    """Pool of helper threads, at most one fewer than there are cores."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[contextvars.Context, _Job]] = SimpleQueue()
        self._lock = threading.Lock()
        self._num_cores = 0
        self._num_threads = 0
        # A set, because Ctrl-C could interrupt the update of a counter.
        self._callers: set[_Job] = set()

    def run(self, job: _Job) -> None:
        """Run a job in this thread, with at most one helper for each further core that other callers do not use."""
        try:
            with self._lock:
                self._num_cores = self._num_cores or visible_cores().count
                num_helpers = min(len(job.numbers), self._num_cores - len(self._callers)) - 1
                self._callers.add(job)
                self._start_threads(num_helpers)
            for _ in range(num_helpers):
                self._jobs.put((contextvars.copy_context(), job))
            job.take_part()
        finally:
            try:
                self._callers.discard(job)
            finally:
                job.finish()

    def _start_threads(self, number: int) -> None:
        while self._num_threads < number:
            thread = threading.Thread(target=self._help, name=f"ringlet-device-{self._num_threads + 1}", daemon=True)
            thread.start()
            self._num_threads += 1

    def _help(self) -> None:
        blas_limiter().limit_this_thread(_ALL_CORES)
        while True:
            context, job = self._jobs.get()
            context.run(job.help)
            del context, job  # otherwise the arrays of this job would stay alive until the next job


_pool = _Pool()


def _after_fork_in_child() -> None:
    global _pool
    _pool = _Pool()  # threads do not survive a fork


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
