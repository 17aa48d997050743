"""Common code of all peers: questions as lines of JSON, checks of results, and measurement of times.

The driver writes a line to the standard input of rank 0, which passes it on to the other ranks, answers on standard
output, and waits for the next. Waiting ranks sleep, so that other subjects have the cores. A last line, the end of the
input or the exit of the driver ends all ranks. Requires only NumPy, because environments of peers import it.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import os
import re
import select
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TextIO

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "END", "Array", "ArrayRank", "Peer", "Question", "begin", "complaint_about", "end_with_driver", "fill", "parts_of",
    "pin", "seconds_per_call", "serve",
]  # fmt: skip

Array = NDArray[Any]

# Inputs repeat after so many elements: a prime, so that no block of a buffer looks like another one.
_PERIOD = 4099
_BLOCK = 64 * _PERIOD

# A rank whose others do not come for so long, or that is still at a question so long after its limit, ends itself.
_START_LIMIT = 180.0
_GRACE = 5.0

# The last line. The end of the input alone is not enough: launchers need not pass it on.
END = "end"


@dataclass(frozen=True)
class Question:
    """A request of the driver.

    Attributes
    ----------
    question : str
        The collective: all_reduce, reduce_scatter, all_gather, broadcast, all_to_all or barrier.
    variant : str
        ``"in_place"``, ``"out"`` or ``"shared"``.
    size_bytes : int
        Size of the larger buffer of a rank: the input of a reduce-scatter, the output of an all-gather.
    dtype : str
    seconds : float
        Length of the timed region.
    keep : bool
        Keep the buffers for the next question.
    limit_seconds : float
        A peer that takes longer ends itself.
    """

    question: str
    variant: str
    size_bytes: int
    dtype: str
    seconds: float
    keep: bool = True
    limit_seconds: float = 60.0


class Peer:
    """One rank of a peer, or all ranks of one that is a single process.

    Attributes
    ----------
    rank, num_ranks : int
    num_processes : int
        1 if ranks are threads or devices.
    version : str
        Version of the measured library, for display.
    variants : mapping of str to sequence of str
        The supported variants of each collective.
    result : object
        The return value of the call that is being checked; None otherwise.
    """

    rank = 0
    num_ranks = 1
    num_processes = 1
    version = ""
    result: Any = None
    variants: ClassVar[Mapping[str, Sequence[str]]] = {}

    def barrier(self) -> None:
        """Wait for all ranks."""

    def largest(self, value: float) -> float:
        """Return the largest value of all ranks."""
        return value

    def allocate(self, count: int, dtype: np.dtype[Any]) -> None:
        """Allocate buffers of `count` elements."""
        raise NotImplementedError

    def release(self) -> None:
        """Release the buffers."""

    def fill(self) -> None:
        """Write the input that `parts_of` expects on every rank."""
        raise NotImplementedError

    def clear(self) -> None:
        """Set all buffers to zero."""
        raise NotImplementedError

    def call(self, collective: str, variant: str) -> Callable[[], object]:
        """Return a function that makes one call on the buffers."""
        raise NotImplementedError

    def complaint(self, collective: str, variant: str) -> str | None:
        """Return the fault of the result of the last call, or None."""
        raise NotImplementedError

    def details(self, question: Question, call: Callable[[], object], calls: int) -> Mapping[str, float]:
        """Measure further properties of a call that was just timed."""
        return {}


class ArrayRank(Peer):
    """One of many ranks, with an input and an output array."""

    x: Array = np.empty(0)
    y: Array = np.empty(0)

    def allocate(self, count: int, dtype: np.dtype[Any]) -> None:
        """Allocate both arrays."""
        self.x, self.y = np.zeros(count, dtype), np.zeros(count, dtype)

    def release(self) -> None:
        """Release both arrays."""
        self.x = self.y = np.empty(0)

    def fill(self) -> None:
        """Write the input of this rank, and invalid values to the output."""
        fill(self.x, self.rank)
        self.y.fill(1)

    def clear(self) -> None:
        """Zero both arrays: repeated in-place sums would grow without bound, and zeros cost the same."""
        self.x.fill(0)
        self.y.fill(0)

    def complaint(self, collective: str, variant: str) -> str | None:
        """Compare this rank's result with the expected result; a broadcast leaves it in the input."""
        return complaint_about(self.x if variant == "in_place" else self.y, collective, self.rank, self.num_ranks)


# --- right answers ----------------------------------------------------------------------------------------------------


def parts_of(collective: str, rank: int, num_ranks: int, count: int) -> list[tuple[int, int, int | None, int]]:
    """Return the elements that a rank must receive, for buffers of `count` elements.

    Returns
    -------
    list of tuple
        Start of a run of elements, its length, the rank that sent it (None for the sum over all ranks), and its start
        there.

    Examples
    --------
    >>> parts_of("all_to_all", 1, 2, 10)
    [(0, 5, 0, 5), (5, 5, 1, 5)]
    """
    block = count // num_ranks
    parts: dict[str, list[tuple[int, int, int | None, int]]] = {
        "all_reduce": [(0, count, None, 0)],
        "reduce_scatter": [(0, block, None, rank * block)],
        "all_gather": [(other * block, block, other, 0) for other in range(num_ranks)],
        "broadcast": [(0, count, 0, 0)],
        "all_to_all": [(other * block, block, other, rank * block) for other in range(num_ranks)],
    }
    return parts[collective]


def _table(rank: int) -> Array:
    """Return one period of a rank's input: whole numbers small enough for exact sums in float32."""
    return (np.arange(_PERIOD) * 3 + rank * 17) % _PERIOD + rank


def _repeated(table: Array, source: int, count: int, dtype: np.dtype[Any]) -> Array:
    """Return up to one block of elements from `source`; blocks are whole periods and therefore equal."""
    return np.resize(np.roll(table, -(source % _PERIOD)), min(count, _BLOCK)).astype(dtype)


def fill(into: Array, rank: int) -> None:
    """Write the input of a rank: different values on every rank and at every position.

    Examples
    --------
    >>> x = np.empty(4, np.float32)
    >>> fill(x, 1); x
    array([18., 21., 24., 27.], dtype=float32)
    """
    values = _repeated(_table(rank), 0, len(into), into.dtype)
    for begin in range(0, len(into), _BLOCK):
        into[begin : begin + _BLOCK] = values[: len(into) - begin]


def complaint_about(given: Array, collective: str, rank: int, num_ranks: int) -> str | None:
    """Return the fault of a result in a rank's whole buffer, with the first element that differs.

    Examples
    --------
    >>> complaint_about(np.float32([17, 23, 29]), "all_reduce", 0, 2)
    'all_reduce, rank 0: element 0 is 17.0, expected 18.0'
    """
    total = np.sum([_table(other) for other in range(num_ranks)], axis=0)
    for begin, count, giver, source in parts_of(collective, rank, num_ranks, len(given)):
        values = _repeated(total if giver is None else _table(giver), source, count, given.dtype)
        for place in range(begin, begin + count, _BLOCK):
            seen = given[place : min(place + _BLOCK, begin + count)]
            expected = values[: len(seen)]
            if not np.array_equal(seen, expected):
                at = int(np.flatnonzero(seen != expected)[0])
                return f"{collective}, rank {rank}: element {place + at} is {seen[at]}, expected {expected[at]}"
    return None


# --- time -------------------------------------------------------------------------------------------------------------


def seconds_per_call(peer: Peer, call: Callable[[], object], region_seconds: float) -> tuple[float, int]:
    """Time back-to-back calls between two barriers: return the seconds of one on the slowest rank, and their number."""
    # One call to warm up is enough where it takes as long as all others may; all ranks must find the same.
    if _region(peer, call, 1) < region_seconds:
        call()
    repeats = 3
    for _ in range(4):
        seconds = _region(peer, call, repeats)
        wanted = max(3, min(100_000, round(region_seconds / max(seconds, 1e-9))))
        # The first calls after a pause are slow: the number they ask for may be far too small.
        if repeats >= wanted / 2:
            break
        repeats = wanted
    return seconds, repeats


def _region(peer: Peer, call: Callable[[], object], repeats: int) -> float:
    peer.barrier()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    elapsed = time.perf_counter() - start
    peer.barrier()
    return peer.largest(elapsed) / repeats


# --- questions and answers --------------------------------------------------------------------------------------------


def begin(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line, and reserve standard output for answers: libraries print to standard error.

    ``folder`` has the pipes of ranks; ``rank`` is None unless a peer starts its own ranks; ``answers`` is a file.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--cores", type=lambda text: [int(word) for word in text.split(",") if word], required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--driver", type=int, required=True)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--memory", choices=("shared", "private"), default="private")
    options = parser.parse_args(arguments)
    sys.stdout.flush()
    end_with_driver(options.driver, options.folder)
    options.answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return options


def pin(rank: int, cores: Sequence[int]) -> None:
    """Bind this process and its later threads to one core; without `cores`, do nothing."""
    if cores:
        os.sched_setaffinity(0, {cores[rank % len(cores)]})


def serve(peer: Peer, options: argparse.Namespace) -> None:
    """Answer questions until there are no more."""
    lines = _lines(peer.rank, peer.num_processes, options.folder)
    faulthandler.dump_traceback_later(_START_LIMIT, exit=True)
    next(lines)
    faulthandler.cancel_dump_traceback_later()
    if peer.rank == 0:
        _write(options.answers, {"ready": True, "version": peer.version, "variants": dict(peer.variants)})
    server = Server(peer)
    for line in lines:
        if line.strip() == END:
            return
        question = Question(**json.loads(line))
        faulthandler.dump_traceback_later(question.limit_seconds + _GRACE, exit=True)
        answer = server.answer(question)
        faulthandler.cancel_dump_traceback_later()
        if peer.rank == 0:
            _write(options.answers, answer)
    # The driver has ended, which a thread clears up after, or a launcher, or rank 0.
    time.sleep(_GRACE)
    os._exit(1)


def end_with_driver(driver: int, folder: Path) -> None:
    """End this process when the driver exits, in a thread, which forked children do not have."""
    threading.Thread(target=_end_with, args=(driver, folder), daemon=True).start()


def _end_with(driver: int, folder: Path) -> None:
    with contextlib.suppress(ProcessLookupError):
        select.select([os.pidfd_open(driver)], [], [])
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    for path in re.findall(r"/dev/shm/\S+$", maps, flags=re.MULTILINE):
        Path(path).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _write(answers: TextIO, answer: Mapping[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _lines(rank: int, num_processes: int, folder: Path) -> Iterator[str]:
    """Yield an empty line once all pipes are open, then the driver's lines, on every rank."""
    if rank != 0:
        with (folder / f"rank{rank}").open(encoding="utf-8") as mine:
            yield ""
            yield from iter(mine.readline, "")
        return
    others = [(folder / f"rank{other}").open("w", encoding="utf-8") for other in range(1, num_processes)]
    yield ""
    for line in iter(sys.stdin.readline, ""):
        for other in others:
            other.write(line)
            other.flush()
        yield line


class Server:
    """Answers questions one by one, and records the checks done with its buffers."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._buffers: tuple[int, str] | None = None
        self._checked: set[tuple[str, str]] = set()

    def answer(self, question: Question) -> dict[str, Any]:
        """Check one call, unless done with these buffers, then time many; return the times or the fault."""
        self._make_buffers(question)
        what = (question.question, question.variant)
        call = self._peer.barrier if question.question == "barrier" else self._peer.call(*what)
        if question.question != "barrier" and what not in self._checked:
            complaint = self._check(call, *what)
            if complaint is not None:
                return {"wrong": complaint}
            self._checked.add(what)
        seconds, calls = seconds_per_call(self._peer, call, question.seconds)
        details = self._peer.details(question, call, calls)
        if not question.keep:
            self._drop_buffers()
        return {"seconds_per_call": seconds, "calls": calls, "checked": True, **details}

    def _make_buffers(self, question: Question) -> None:
        wanted = (question.size_bytes, question.dtype)
        if self._buffers != wanted and question.question != "barrier":
            self._drop_buffers()
            dtype = np.dtype(question.dtype)
            self._peer.allocate(question.size_bytes // dtype.itemsize, dtype)
            self._peer.clear()
            self._buffers = wanted

    def _drop_buffers(self) -> None:
        self._peer.release()
        self._buffers = None
        self._checked.clear()

    def _check(self, call: Callable[[], object], collective: str, variant: str) -> str | None:
        peer = self._peer
        peer.fill()
        peer.barrier()
        peer.result = call()
        peer.barrier()
        complaint, peer.result = peer.complaint(collective, variant), None
        wrong = peer.largest(0 if complaint is None else peer.rank + 1)
        peer.clear()
        return None if wrong == 0 else complaint or f"{collective}, {variant}: the result of rank {wrong - 1:.0f}"
