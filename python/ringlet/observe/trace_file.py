"""Trace: a timeline of this process, which a thread writes to a file while the program runs.

The file is a JSON array, with one event per line; viewers do not need its closing bracket, which is written last. The
calls of ranks are read from the flight recorder. Most other events are the spans that `Trace.timed` measures.
"""

from __future__ import annotations

import atexit
import errno
import itertools
import json
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ringlet.observe import trace_hook
from ringlet.observe.recorder import Operation, RingReader

_log = logging.getLogger(__name__)

R = TypeVar("R")

SUFFIX = ".trace.json"
VERSION = 1
# Rank or replica N has track N + 1; threads without a rank have tracks from this number on.
FIRST_THREAD = 10_000
_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.005, 0.25
# The thread runs for at most a fifth of the time, so that it does not slow down loops of calls of a few microseconds.
_PAUSE_PER_WORK = 4
_MOST_SPANS = 10_000
_SHORTEST_STAGE_NS = 20_000
# The start of a longer call is written before the call ends, in case the process is killed during the call.
_LONG_CALL_SECONDS = 1.0


class Trace:
    """A trace of this process; `begin` opens its file."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.path = ""
        self._pid = os.getpid()
        self._file = -1
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self._spans: deque[tuple[str, str, int, int | None, int, int]] = deque()
        self._num_lost_spans = 0
        self._replica = threading.local()
        self._asynchronous: set[int] = set()  # threads that run asynchronous calls
        # All attributes below are used by one thread at a time.
        self._rings: RingReader | None = None
        self._tracks: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._new_names: dict[int, str] = {}
        self._rank_tracks: dict[int, int] = {}  # thread -> track of the rank of its last call in the largest group
        self._most_ranks = 0
        self._has_replicas = False
        self._begun_calls: set[int] = set()  # threads whose call in progress has been written

    def begin(self) -> None:
        """Open the file and start the thread that writes to it, unless done before; raise OSError on failure."""
        if self.path:
            return
        with self._lock:
            if self.path:
                return
            os.makedirs(self.folder, exist_ok=True)  # noqa: PTH103 - pathlib loads slowly
            host = os.uname().nodename
            for number in itertools.count(1):
                name = f"{host}-{self._pid}{f'-{number}' if number > 1 else ''}{SUFFIX}"
                path = os.path.join(self.folder, name)  # noqa: PTH118
                try:
                    self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o666)
                    break
                except FileExistsError:  # an earlier process wrote a file of this name
                    continue
            began = time.monotonic_ns()
            about = {
                "version": VERSION,
                "host": host,
                "pid": self._pid,
                "job": os.environ.get("RINGLET_JOB_ID", ""),
                "command": " ".join(sys.orig_argv),
                "began": began / 1e3,
                "wall_minus_monotonic": (time.time_ns() - time.monotonic_ns()) / 1e3,
            }
            name = self._metadata("process_name", {"name": f"{host} {self._pid}"})
            self._write(f"[\n{self._metadata('ringlet', about)},\n{name}")
            if (rings := self._reader()) is not None:
                list(rings.read_new())  # skips calls made before the trace
            self.path = path
            self._thread = threading.Thread(target=self._run, name="ringlet trace", daemon=True)
            self._thread.start()

    def begin_or_stop(self) -> None:
        """Open the file; on failure, end the trace with a warning."""
        try:
            self.begin()
        except OSError as error:
            _stop(self, error)

    def timed(
        self, name: str, category: str, function: Callable[..., R], replica: int | None = None
    ) -> Callable[..., R]:
        """Return a function that calls `function`, for `replica` if given, and traces all but short stages."""

        def call(*args: Any, **kwargs: Any) -> R:
            self.begin_or_stop()
            thread, outer = threading.get_native_id(), getattr(self._replica, "number", None)
            if category == "asynchronous":
                self._asynchronous.add(thread)
            self._replica.number = number = outer if replica is None else replica
            start = time.monotonic_ns()
            try:
                return function(*args, **kwargs)
            finally:
                end = time.monotonic_ns()
                self._replica.number = outer
                if category != "stage" or end - start >= _SHORTEST_STAGE_NS:
                    if len(self._spans) < _MOST_SPANS:
                        self._spans.append((name, category, thread, number, start, end))
                    else:
                        self._num_lost_spans += 1

        return call

    def close(self) -> None:
        """Write the remaining events, and close the file."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            if self._file >= 0 and self._drain(is_last=True) is not None and self._write("\n]\n"):
                self._close_file()

    def forget(self) -> None:
        """Close the file in the child of a fork, without writing to it."""
        if self._file >= 0:
            os.close(self._file)

    def _run(self) -> None:
        pause = _SHORTEST_PAUSE_SECONDS
        while not self._is_over.wait(pause):
            start = time.thread_time()
            fill = self._drain()
            if fill is None:
                return
            pause = pause / 2 if fill > 0.5 else pause * 2 if fill < 0.125 else pause
            pause = min(max(pause, _SHORTEST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)
            pause = max(pause, _PAUSE_PER_WORK * (time.thread_time() - start))

    def _drain(self, is_last: bool = False) -> float | None:
        """Write all new calls and spans; return the fraction of the fullest buffer that they occupied.

        Return None if they cannot be written.
        """
        events: list[str] = []
        fill = len(self._spans) / _MOST_SPANS
        rings = self._reader()
        for ring in rings.read_new() if rings is not None else ():
            fill = max(fill, ring.fill)
            for operation in ring.ended:
                events += self._call_events(operation, ring.thread)
            if ring.num_lost:
                events.append(self._lost(ring.num_lost, "calls", self._thread_track(ring.thread)))
            if ring.current is not None:
                events += self._call_in_progress(ring.current, ring.thread, is_last)
        while self._spans:
            name, category, thread, replica, start, end = self._spans.popleft()
            track = self._thread_track(thread) if replica is None else self._rank_track(replica, "replica")
            if category == "replica":
                self._has_replicas = True
            events.append(self._slice(track, start / 1e3, (end - start) / 1e3, category, name))
        if self._num_lost_spans:
            lost, self._num_lost_spans = self._num_lost_spans, 0
            events.append(self._lost(lost, "spans", self._thread_track(threading.get_native_id())))
        names = [self._metadata("thread_name", {"name": name}, track) for track, name in self._new_names.items()]
        self._new_names.clear()
        return fill if self._write("".join(",\n" + event for event in names + events)) else None

    # --- events -------------------------------------------------------------------------------------------------------

    def _call_events(self, operation: Operation, thread: int) -> Iterator[str]:
        assert operation.ended is not None
        track = self._call_track(operation, thread)
        start, end = operation.began * 1e6, operation.ended * 1e6
        if thread in self._begun_calls:
            self._begun_calls.remove(thread)
            yield f'{{"ph":"E","pid":{self._pid},"tid":{track},"ts":{end:.3f}}}'
        else:
            yield self._slice(track, start, end - start, "collective", operation.kind, args=_arguments(operation))
        arrived = end if operation.arrived is None else operation.arrived * 1e6
        if arrived > start:
            yield self._slice(track, start, arrived - start, "waiting", "waiting")
        if operation.arrived is not None and operation.num_ranks > 1:
            # An arrow from the last rank to make the call, which did not wait, to the other ranks.
            yield (
                f'{{"ph":"{"t" if arrived > start else "s"}","pid":{self._pid},"tid":{track},"ts":{arrived:.3f},'
                f'"cat":"collective","name":"call","id":{_flow(operation)}}}'
            )

    def _call_in_progress(self, operation: Operation, thread: int, is_last: bool) -> Iterator[str]:
        if thread in self._begun_calls or not (is_last or time.monotonic() - operation.began > _LONG_CALL_SECONDS):
            return
        self._begun_calls.add(thread)
        track = self._call_track(operation, thread)
        yield (
            f'{{"ph":"B","pid":{self._pid},"tid":{track},"ts":{operation.began * 1e6:.3f},"cat":"collective",'
            f'"name":"{operation.kind}","args":{_arguments(operation)}}}'
        )

    def _lost(self, number: int, what: str, track: int) -> str:
        return (
            f'{{"ph":"i","s":"t","pid":{self._pid},"tid":{track},"ts":{time.monotonic() * 1e6:.3f},"cat":"lost",'
            f'"name":"{number} {what} lost","args":{{"lost":{number}}}}}'
        )

    # --- tracks -------------------------------------------------------------------------------------------------------

    def _call_track(self, operation: Operation, thread: int) -> int:
        """Return the track of the thread's rank in the largest group or, for asynchronous calls, of the thread."""
        if thread in self._asynchronous:
            return self._thread_track(thread)
        if operation.num_ranks >= self._most_ranks or thread not in self._rank_tracks:
            self._most_ranks = max(self._most_ranks, operation.num_ranks)
            self._rank_tracks[thread] = self._rank_track(operation.rank, "rank")
        return self._rank_tracks[thread]

    def _rank_track(self, number: int, what: str) -> int:
        return self._named(number + 1, f"{what} {number}")

    def _thread_track(self, thread: int) -> int:
        """Return the track of a thread's rank; its own without a rank, or with replicas, which may change threads."""
        if thread in self._rank_tracks and not self._has_replicas:
            return self._rank_tracks[thread]
        if thread not in self._tracks:
            self._tracks[thread] = FIRST_THREAD + len(self._tracks)
            names = {found.native_id: found.name for found in threading.enumerate()}
            self._named(self._tracks[thread], names.get(thread, f"thread {thread}"))
        return self._tracks[thread]

    def _named(self, track: int, name: str) -> int:
        if self._names.get(track) != name and not self._names.get(track, "").startswith("replica"):
            self._names[track] = self._new_names[track] = name
        return track

    # --- output -------------------------------------------------------------------------------------------------------

    def _slice(self, track: int, start: float, duration: float, category: str, name: str, *, args: str = "{}") -> str:
        return (
            f'{{"ph":"X","pid":{self._pid},"tid":{track},"ts":{start:.3f},"dur":{duration:.3f},"cat":"{category}",'
            f'"name":{json.dumps(name)},"args":{args}}}'
        )

    def _metadata(self, name: str, arguments: dict[str, Any], track: int = 0) -> str:
        return json.dumps({"ph": "M", "pid": self._pid, "tid": track, "name": name, "args": arguments})

    def _reader(self) -> RingReader | None:
        from ringlet import _core  # loaded here because the launcher does not use it

        if self._rings is None and (descriptor := _core.recorder()) >= 0:
            self._rings = RingReader(descriptor, "the flight recorder of this process")
        return self._rings

    def _write(self, text: str) -> bool:
        """Write whole events; return False if the file is closed, or after a failure, which ends the trace."""
        if self._file < 0:
            return False
        data = text.encode()
        size = os.fstat(self._file).st_size
        try:
            if os.write(self._file, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            os.ftruncate(self._file, size)
            self._close_file()
            _stop(self, error)
            return False
        return True

    def _close_file(self) -> None:
        os.close(self._file)
        self._file = -1


def _arguments(operation: Operation) -> str:
    return (
        f'{{"call":"{operation.text}","group":"{operation.group}","number":{operation.sequence},'
        f'"rank":{operation.rank},"ranks":{operation.num_ranks},"bytes":{operation.bytes},'
        f'"outcome":"{operation.outcome}"}}'
    )


def _flow(operation: Operation) -> int:
    """Return an identifier of a call that is equal on all ranks, and exact as a JavaScript number."""
    return (int(operation.group, 16) ^ operation.sequence * 0x9E3779B97F4A7C15) >> 11 & (1 << 53) - 1


def close() -> None:
    """Close the trace of this process, if there is one."""
    found, trace_hook.current = trace_hook.current, None
    if found is not None:
        found.close()


def _stop(trace: Trace, error: OSError) -> None:
    if trace_hook.current is trace:
        trace_hook.current = None
        _log.warning(
            "tracing has stopped, because %s cannot be written: %s; the program continues",
            trace.path or trace.folder,
            error,
        )


def _trace_child() -> None:
    if (parent := trace_hook.current) is not None:
        parent.forget()
        trace_hook.current = Trace(parent.folder)


atexit.register(close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_trace_child)
