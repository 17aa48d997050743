"""Trace summary: the time that each rank spent computing, communicating and waiting for each other rank."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from ringlet.observe.trace_file import FIRST_THREAD

Interval = tuple[float, float]
Track = tuple[int, int]  # process and track


@dataclass(frozen=True)
class RankTime:
    """Seconds that one rank spent computing, communicating and waiting; `waits_for` has the waits by awaited rank."""

    rank: int
    process: int
    seconds: float
    compute: float
    communication: float
    waiting: float
    input: float  # time in which at least one thread of the process waited for an iterator
    waits_for: dict[int, float]
    num_calls: int
    num_bytes: int


@dataclass
class _Call:
    began: float
    rank: int
    num_ranks: int
    has_ended: bool
    waiting: float = 0.0


@dataclass
class _Times:
    replicas: list[Interval] = field(default_factory=list)
    others: list[Interval] = field(default_factory=list)  # time in calls, waits, input and checkpoints
    calling: float = 0.0
    waiting: float = 0.0
    num_calls: int = 0
    num_bytes: int = 0


class TraceSummary:
    """Adds up the events of traces; times are in microseconds, on a clock common to all processes."""

    def __init__(self) -> None:
        self.num_lost = 0
        self._tracks: defaultdict[Track, _Times] = defaultdict(_Times)
        self._calls: defaultdict[tuple[str, int], dict[Track, _Call]] = defaultdict(dict)
        self._last_calls: dict[Track, _Call] = {}
        self._begun: dict[Track, dict[str, Any]] = {}
        self._extents: dict[int, Interval] = {}
        # Waits of each process for asynchronous calls, and for the next element of an iterator.
        self._waits: defaultdict[int, list[Interval]] = defaultdict(list)
        self._inputs: defaultdict[int, list[Interval]] = defaultdict(list)

    def begin(self, process: int, time: float) -> None:
        """Add a process whose trace begins at `time`."""
        self._extents[process] = (time, time)

    def add(self, process: int, event: dict[str, Any]) -> None:
        """Add an event of a process."""
        if (start := event.get("ts")) is None:
            return
        track, end = (process, event["tid"]), start + event.get("dur", 0.0)
        first, last = self._extents[process]
        self._extents[process] = (first, max(last, end))
        category = event.get("cat")
        if event["ph"] == "B":
            self._begun[track] = event
        elif event["ph"] == "E":
            if (begun := self._begun.pop(track, None)) is not None:
                self._add_call(track, (begun["ts"], end), begun["args"])
        elif category == "collective" and event["ph"] == "X":
            self._add_call(track, (start, end), event["args"])
        elif category == "waiting":
            self._tracks[track].waiting += end - start
            if track in self._last_calls:
                self._last_calls[track].waiting = end - start
        elif category == "replica":
            self._tracks[track].replicas.append((start, end))
        elif category in ("wait", "input", "checkpoint"):
            self._tracks[track].others.append((start, end))
            if category != "checkpoint":
                (self._waits if category == "wait" else self._inputs)[process].append((start, end))
        elif category == "lost":
            self.num_lost += event["args"]["lost"]

    def _add_call(self, track: Track, time: Interval, args: dict[str, Any], has_ended: bool = True) -> None:
        times = self._tracks[track]
        times.others.append(time)
        times.calling += time[1] - time[0]
        times.num_calls += 1
        times.num_bytes += args["bytes"]
        call = self._last_calls[track] = _Call(time[0], args["rank"], args["ranks"], has_ended)
        self._calls[args["group"], args["number"]][track] = call

    def end(self) -> None:
        """Complete the calls that were in progress when the traces ended; all of their time counts as waiting."""
        end = max((last for _, last in self._extents.values()), default=0.0)
        for track, event in self._begun.items():
            self._extents[track[0]] = (self._extents[track[0]][0], end)
            self._add_call(track, (event["ts"], end), event["args"], has_ended=False)
            self._tracks[track].waiting += end - event["ts"]
            self._last_calls[track].waiting = end - event["ts"]
        self._begun.clear()

    def ranks(self) -> list[RankTime]:
        """Return the times of each rank, in rank order."""
        waits = self._waits_for()
        return [
            self._rank_time(track, times, waits[track])
            for track, times in sorted(self._tracks.items(), key=lambda item: (item[0][1], item[0][0]))
            if track[1] < FIRST_THREAD
        ]

    def asynchronous(self) -> Interval:
        """Return the seconds spent in asynchronous calls, and for how many of these the program did not wait."""
        total = hidden = 0.0
        for (process, number), times in self._tracks.items():
            if number >= FIRST_THREAD and times.num_calls:
                total += times.calling
                hidden += times.calling - _length(_overlap(_union(times.others), _union(self._waits[process])))
        return total / 1e6, hidden / 1e6

    def _rank_time(self, track: Track, times: _Times, waits_for: dict[int, float]) -> RankTime:
        extent = self._extents[track[0]]
        # Without strategy.run, all remaining time counts as computation.
        busy = _union(times.replicas) or [extent]
        return RankTime(
            rank=track[1] - 1,
            process=track[0],
            seconds=(extent[1] - extent[0]) / 1e6,
            compute=(_length(busy) - _length(_overlap(busy, _union(times.others)))) / 1e6,
            communication=(times.calling - times.waiting) / 1e6,
            waiting=times.waiting / 1e6,
            input=_length(_union(self._inputs[track[0]])) / 1e6,
            waits_for=waits_for,
            num_calls=times.num_calls,
            num_bytes=times.num_bytes,
        )

    def _waits_for(self) -> dict[Track, dict[int, float]]:
        found: defaultdict[Track, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
        for calls in self._calls.values():
            ranks = {call.rank for call in calls.values()}
            num_ranks = next(iter(calls.values())).num_ranks
            if len(ranks) == num_ranks:
                late = max(calls, key=lambda track: calls[track].began)[1] - 1
            elif not any(call.has_ended for call in calls.values()):
                late = min(set(range(num_ranks)) - ranks)
            else:  # a rank's record was lost
                continue
            for track, call in calls.items():
                if call.waiting and track[1] < FIRST_THREAD:
                    found[track][late] += call.waiting / 1e6
        return defaultdict(dict, {track: dict(waits) for track, waits in found.items()})


def _union(intervals: list[Interval]) -> list[Interval]:
    joined: list[Interval] = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _overlap(first: list[Interval], second: list[Interval]) -> list[Interval]:
    """Return the intersection of two sorted lists of disjoint intervals."""
    found, i, j = [], 0, 0
    while i < len(first) and j < len(second):
        start, end = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        if start < end:
            found.append((start, end))
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return found


def _length(intervals: list[Interval]) -> float:
    return sum(end - start for start, end in intervals)
