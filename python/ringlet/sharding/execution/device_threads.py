"""The work of devices: in the calling thread where it is little, else in as many threads as there are cores.

The threads are those of one pool that all of the process has in common, besides the threads that call. A *job* is the
work of some devices, which are claimed in order; a caller claims from its own job until nothing is left, so it never
waits for a thread that is busy elsewhere, and calls may be nested.
"""

from __future__ import annotations

import contextvars
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from ringlet.devices import visible_cores
from ringlet.devices.blas_threads import blas_limiter

__all__ = ["INLINE_BYTES", "in_threads", "on_devices"]

# To wake helpers up and wait for them takes about 40 us: as long as simple arithmetic takes for half as many bytes as
# these, of all devices together.
INLINE_BYTES = 4 << 20

# So many replicas of the limiter's that each has one BLAS thread.
_ALL_CORES = 1 << 30


def on_devices(
    work: Callable[[int], None], devices: Sequence[int], bytes_per_device: int, *, is_alone: bool = False
) -> None:
    """Do the work of each device, at the same time where that is faster.

    What a device computes does not depend on which thread does it, nor on how many there are: BLAS has one thread for
    each device meanwhile, also if one thread does all the work.

    Parameters
    ----------
    work : callable
        Takes the number of a device. Runs in a copy of the caller's context; it may call this function.
    devices : sequence of int
    bytes_per_device : int
        What the work of one reads and writes, about, or as much as could be in the same time: decides whether threads
        are worth their wake-up.
    is_alone : bool
        Whether the device is the only one of its group: then BLAS keeps its threads.

    Raises
    ------
    Exception
        What the first device in order raised, with the device in a note.

    Examples
    --------
    >>> done = []
    >>> on_devices(done.append, [0, 1, 2], 100)
    >>> done
    [0, 1, 2]
    """
    in_threads(work, devices, bytes_per_device, is_alone=is_alone, note="in the work of device ")


def in_threads(
    work: Callable[[int], None], numbers: Sequence[int], bytes_each: int, *, is_alone: bool = False, note: str = ""
) -> None:
    """Do work that is cut otherwise than by devices, as :func:`on_devices` does.

    Parameters
    ----------
    work : callable
        Takes one of the numbers.
    numbers : sequence of int
    bytes_each, is_alone : int, bool
        As there.
    note : str
        What errors are noted to come from, before the number.

    Examples
    --------
    >>> squares = [0, 0, 0]
    >>> in_threads(lambda i: squares.__setitem__(i, i * i), range(3), 8)
    >>> squares
    [0, 1, 4]
    """
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
        except BaseException:  # Ctrl-C on the way there
            limiter.leave(run)
            raise


def _in_turn(work: Callable[[int], None], numbers: Sequence[int], note: str) -> None:
    number = None
    try:
        for number in numbers:
            work(number)
    except Exception as error:
        # The innermost device of nested work; Python 3.10 has no notes.
        if note and hasattr(error, "add_note") and not any(n.startswith(note) for n in getattr(error, "__notes__", ())):
            error.add_note(f"{note}{number}")
        raise


class _Job:
    """The work of one call, and what became of it.

    Only helpers are counted: Ctrl-C may leave the caller anywhere, and nobody would wait for its leave.
    """

    def __init__(self, work: Callable[[int], None], numbers: Sequence[int], note: str) -> None:
        self.numbers = numbers
        self._work, self._note = work, note
        self._places = itertools.count()
        self._errors: dict[int, BaseException] = {}
        self._lock = threading.Lock()
        self._num_helpers = 0
        self._is_closed = False
        self._has_ended = threading.Event()

    def take_part(self) -> None:
        """Claim devices until there are none left, or one has failed: those before it were claimed already."""
        while not self._errors and not self._is_closed and (place := next(self._places)) < len(self.numbers):
            try:
                _in_turn(self._work, self.numbers[place : place + 1], self._note)
            except BaseException as error:  # raised by `finish`
                self._errors[place] = error

    def help(self) -> None:
        """Take part in another thread, which `finish` waits for."""
        with self._lock:
            if self._is_closed:
                return
            self._num_helpers += 1
        self.take_part()
        with self._lock:
            self._num_helpers -= 1
            if self._is_closed and not self._num_helpers:
                self._has_ended.set()

    def finish(self) -> None:
        """Wait for the devices that others have claimed; then raise what the first one raised."""
        self._is_closed = True
        with self._lock:
            is_busy = self._num_helpers > 0
        if is_busy:
            try:
                self._has_ended.wait()
            except BaseException:  # Ctrl-C: they still write to the caller's arrays. The next one does not wait
                self._has_ended.wait()
                raise
        if self._errors:
            # Ctrl-C before all else. None is kept: its frames hold arrays.
            first = min(self._errors, key=lambda place: (isinstance(self._errors[place], Exception), place))
            error = self._errors[first]
            self._errors.clear()
            try:
                raise error
            finally:
                del error


class _Pool:
    """Threads that help whoever calls, one fewer than there are cores."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[contextvars.Context, _Job]] = SimpleQueue()
        self._lock = threading.Lock()
        self._num_cores = 0
        self._num_threads = 0
        # A set, not a sum: Ctrl-C may come before a caller has entered, or while it does.
        self._callers: set[_Job] = set()

    def run(self, job: _Job) -> None:
        """Do a job, with as many helpers as there are cores that no other caller is using."""
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
            del context, job  # or the memory of its arrays would live until the next one comes


_pool = _Pool()


def _after_fork_in_child() -> None:
    global _pool
    _pool = _Pool()  # the threads are the parent's


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
