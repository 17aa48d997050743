"""All peers at one number of ranks: started together, measured in turn, and restarted after a failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

from bench.peer_process import PeerFailure, PeerProcess
from bench.results import Sample

__all__ = ["Failure", "PeerTeam"]

# A peer that broke down more often than this is left alone.
_MOST_RESTARTS = 2

# How long all peers together may take to end, and how long where nobody wants to wait.
_STOP_SECONDS = 10.0
_INTERRUPTED_SECONDS = 1.0


@dataclass(frozen=True)
class Failure:
    """A missing time.

    Attributes
    ----------
    peer : str
    num_ranks : int
    what : str
        The question.
    reason : {"timed out", "ended", "wrong answer"}
        Reason in a word, for tables.
    message : str
        Details.
    """

    peer: str
    num_ranks: int
    what: str
    reason: str
    message: str

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return asdict(self)


class PeerTeam:
    """Concurrently running peers; a context manager that terminates and cleans up all of them.

    Parameters
    ----------
    starters : mapping of str to callable
        Functions that start the peer of each name.
    num_ranks : int
        Number of ranks of each peer.
    start_seconds, answer_seconds : float
        Time limits of a start and of an answer.

    Attributes
    ----------
    failures : list of Failure
        The failures so far.
    versions : dict of str to str
        Versions of the started peers.
    variants : dict of str to mapping
        The supported variants of the collectives of these peers.
    """

    def __init__(
        self,
        starters: Mapping[str, Callable[[], PeerProcess]],
        num_ranks: int,
        *,
        start_seconds: float = 120.0,
        answer_seconds: float = 60.0,
    ) -> None:
        self._starters = starters
        self._num_ranks = num_ranks
        self._start_seconds = start_seconds
        self._answer_seconds = answer_seconds
        self._running: dict[str, PeerProcess] = {}
        self._breakdowns = dict.fromkeys(starters, 0)
        self._unanswered: dict[tuple[str, str], str] = {}
        self._started_at = time.perf_counter()
        self._idle_cpu_seconds = 0.0
        self.failures: list[Failure] = []
        self.versions: dict[str, str] = {}
        self.variants: dict[str, Mapping[str, Sequence[str]]] = {}

    def __enter__(self) -> PeerTeam:
        try:
            # All begin at once: most of a start is waiting for files and for each other.
            for name, start in self._starters.items():
                self._running[name] = start()
            for name in self._starters:
                self._wait_for(name)
        except BaseException:
            self._stop_all(_INTERRUPTED_SECONDS)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop_all(_STOP_SECONDS if kind is None else _INTERRUPTED_SECONDS)

    def ask(self, name: str, question: Mapping[str, Any]) -> Sample | None:
        """Return a time of one call by the peer `name`; None if a time is missing, now or in an earlier round.

        A failed peer is restarted at its next question, up to a limit.
        """
        what = " ".join(str(question[key]) for key in ("question", "variant", "size_bytes", "dtype"))
        if (name, what) in self._unanswered or not self._is_running(name):
            self._unanswered.setdefault((name, what), "given up")
            return None
        try:
            return self._running[name].sample(question, self._answer_seconds)
        except PeerFailure as failure:
            self._note(name, what, failure)
            return None

    def reason(self, name: str, question: Mapping[str, Any]) -> str:
        """Return the reason for a missing answer in a word; empty if there is an answer."""
        what = " ".join(str(question[key]) for key in ("question", "variant", "size_bytes", "dtype"))
        return self._unanswered.get((name, what), "")

    def cpu_seconds(self) -> float:
        """Return the CPU time of the running peers, in seconds."""
        return sum(process.cpu_seconds() for process in self._running.values())

    def idle_share(self) -> float:
        """Return the fraction of one core's time that all peers together used while idle."""
        idle = self._idle_cpu_seconds + sum(process.idle_cpu_seconds for process in self._running.values())
        return idle / max(time.perf_counter() - self._started_at, 1e-9)

    def _is_running(self, name: str) -> bool:
        if name not in self._running and self._breakdowns[name] <= _MOST_RESTARTS:
            self._running[name] = self._starters[name]()
            self._wait_for(name)
        return name in self._running

    def _wait_for(self, name: str) -> None:
        process = self._running[name]
        try:
            process.wait_until_ready(self._start_seconds)
        except PeerFailure as failure:
            # What does not start now will not start later.
            self._breakdowns[name] = _MOST_RESTARTS
            self._note(name, "start", failure)
        else:
            self.versions[name], self.variants[name] = process.version, process.variants

    def _note(self, name: str, what: str, failure: PeerFailure) -> None:
        self.failures.append(Failure(name, self._num_ranks, what, failure.reason, str(failure)))
        self._unanswered[name, what] = failure.reason
        if failure.reason != "wrong answer":
            self._breakdowns[name] += 1
            process = self._running.pop(name)
            self._idle_cpu_seconds += process.idle_cpu_seconds
            process.stop(seconds=0.0)

    def _stop_all(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for process in self._running.values():
            process.ask_to_end()
        while self._running:
            # Each is stopped even when stopping another one is interrupted.
            _, process = self._running.popitem()
            try:
                process.stop(seconds=max(0.0, deadline - time.monotonic()))
            except BaseException:
                self._stop_all(0.0)
                raise
