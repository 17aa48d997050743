"""The failure of a group over several hosts: its first exception, which every rank of every host raises."""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.collectives.hosts.host_link import WHOLE
from ringlet.errors import (
    CollectiveAborted,
    CollectiveMismatchError,
    DeadlineExceededError,
    WorkerLostError,
)
from ringlet.rendezvous.process_identity import ProcessIdentity

_RANKS = re.compile(r"\b(ranks? )((?:\d+)(?:(?:, | and | to )\d+)*)")
_CHECK = re.compile(r"barrier\((['\"])(.*?)\1\)(?=[,;]| waited| waits| has | was |\n|$)")
_NUMBER = re.compile(r"(\(their call number |, call )\d+")
_COUNT = re.compile(r" after \d+ calls?(?=\))")
_MISMATCH = ("the ranks did not make the same call", " waits for ranks that make no more calls")
_LATE = "more time with timeout_seconds="
_RESTART = "Every rank of this group raises this: start the job again, from its last checkpoint if it has one."


@dataclass(frozen=True)
class Host:
    """One host of a group, with the ranks `begin` to ``end - 1``.

    `leader` is the index of the process that runs the first of these ranks, in the argument of :func:`hosts_of`.
    """

    name: str
    begin: int
    end: int
    leader: int

    def __str__(self) -> str:
        last = {1: "", 2: f", {self.end - 1}"}.get(self.end - self.begin, f" to {self.end - 1}")
        return f"rank{'s' if last else ''} {self.begin}{last} (host {self.name})"


def hosts_of(processes: Sequence[tuple[Sequence[int], ProcessIdentity]]) -> list[Host]:
    """Return the hosts of processes, each given as its ranks and its identity; hosts are in the order of their ranks.

    Processes that cannot share memory or detect each other's exit count as different hosts. Raise ValueError if the
    ranks of a host are not consecutive.
    """
    places: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    names: list[str] = []
    for process, (ranks, identity) in enumerate(processes):
        key = (identity.boot_id or identity.host, identity.network_namespace, identity.pid_namespace)
        if key not in places:
            names.append(identity.host)
        places.setdefault(key, []).extend((rank, process) for rank in ranks)
    hosts = []
    for name, found in zip(names, places.values(), strict=True):
        begin, leader = min(found)
        if sorted(rank for rank, _ in found) != list(range(begin, begin + len(found))):
            raise ValueError(f"host {name} has the ranks {sorted(rank for rank, _ in found)}")
        hosts.append(Host(name, begin, begin + len(found), leader))
    return sorted(hosts, key=lambda host: host.begin)


class HostGroup:
    """A group over several hosts, which members use in place of a core group.

    `local` is the group of the ranks of this host. For each rank of all hosts, `identities` has the identity of its
    process, and `processes` the number of the process in the MPI job. Sums and means of float32 are sent to other hosts
    in `network_dtype`, if given. A group split from `whole` has its `network_dtype`, and also fails if `whole` fails.
    """

    def __init__(
        self,
        local: _core.Group,
        hosts: Sequence[Host],
        host: int,
        identities: Sequence[ProcessIdentity],
        processes: Sequence[int],
        *,
        epoch: int,
        network_dtype: np.dtype[Any] | None = None,
        whole: HostGroup | None = None,
    ) -> None:
        self.local = local
        self.hosts = hosts
        self.host = host
        self.num_ranks = hosts[-1].end
        self.epoch = epoch
        self.network_dtype: np.dtype[Any] | None = whole.network_dtype if whole else network_dtype
        self._whole = whole
        self.report: Callable[[bytes], None] = lambda data: None  # reports a failure to the other leaders
        self.left: dict[int, tuple[int, str]] = {}  # host -> number of its calls, and why it has left
        self.call = (0, "")  # number and description of the leader's call in progress
        self.identities = identities
        self.processes = processes
        self._first: Exception | None = None
        self._lock = threading.Lock()

    @property
    def failure(self) -> str | None:
        """The text of the first exception; None if the group has not failed."""
        text = self.local.failure or (self._whole and self._whole.failure)
        if self._first is None and text:
            self._adopt(self._typed(text))
        return None if self._first is None else str(self._first)

    def abort(self, reason: str) -> None:
        """Make all ranks raise `CollectiveAborted` with this reason, unless the group has already failed."""
        self._adopt(CollectiveAborted(reason))

    def report_stall(self, waiting: str, rank: int) -> None:
        """Log the message `waiting` about a waiting rank, and what the ranks of this host are executing."""
        self.local.report_stall(waiting, rank - self.hosts[self.host].begin)

    def check(self) -> None:
        """Raise the first recorded exception, if any, or an error if a host left before the call in progress."""
        if self.failure is not None:
            self.raise_first()
        if self.left:
            self.check_presence()

    @property
    def first(self) -> Exception | None:
        """A copy of the first exception recorded for the group, which all ranks raise; None if none is recorded."""
        return copy.copy(self._first)

    def raise_first(self) -> None:
        """Raise a copy of the first recorded exception."""
        assert self._first is not None
        raise copy.copy(self._first)

    def fail(self, error: Exception, number: int) -> Exception:
        """Fail the group with the error of call `number` of this rank; return the first recorded exception."""
        return self._adopt(self._translated(error, number))

    def _adopt(self, error: Exception) -> Exception:
        # The error of the whole group already has the rank numbers of that group.
        if self._whole is not None and self._whole.failure is not None:
            error = self._whole.first or error
        with self._lock:
            is_first = self._first is None
            if is_first:
                self._first = error
        if is_first:
            text = WHOLE + str(self._first)
            self.local.abort(text)  # no effect if the local group has already failed
            self.report(text.encode())
        assert self._first is not None
        return copy.copy(self._first)

    def read_notice(self, host: int, data: bytes) -> None:
        """Process a notice that another host has failed or makes no more calls."""
        text = data.decode(errors="replace")
        if text.startswith(WHOLE):
            self._adopt(self._typed(text))
        else:
            number, _, reason = text.partition(" ")
            self.left[host] = (int(number), reason)

    def check_presence(self) -> None:
        """Raise an error if a host has left before the leader's call in progress."""
        number, what = self.call
        gone = [f"{self.hosts[host]} {why}" for host, (last, why) in sorted(self.left.items()) if last < number]
        if gone:
            raise CollectiveMismatchError(
                f"{WHOLE}{what}, call {number} of {self.hosts[self.host]}, waits for ranks that make no more calls: "
                f"{', '.join(gone)}. Make the same calls in the same order on every rank."
            )

    def lost(self, processes: Sequence[int]) -> WorkerLostError:
        """Return the error for lost processes of the MPI job; empty `processes` means that MPI did not name them."""
        ranks = [rank for rank, process in enumerate(self.processes) if process in processes]
        if not ranks:
            name = f"process {min(processes)} of the MPI job" if processes else "another process of the MPI job"
            return WorkerLostError(
                f"{WHOLE}{name}, whose ranks are unknown, was lost: it was killed, or the network failed. {_RESTART}"
            )
        first = self.identities[min(ranks)]
        reason = "was lost: it was killed, or its host or the network to it failed"
        names = ", ".join(f"rank {rank}" for rank in sorted(ranks)[1:9])
        others = f", as well as {names}" if names else ""
        text = f"{WHOLE}rank {min(ranks)} ({first}) {reason}{others}. {_RESTART}"
        return WorkerLostError(text, min(ranks), first.host, first.pid, reason)

    def lost_target(self, rank: int, how: str) -> WorkerLostError:
        """Return the error about a message from or to a rank that has left or ended."""
        process = self.identities[rank]
        text = f"rank {rank} ({process}) {how}: it sends and receives no more messages. Start the job again."
        return WorkerLostError(text, rank, process.host, process.pid, how)

    def failure_of(self, text: str) -> Exception:
        """Return the error for the text of a failure, in which ranks are numbered over all hosts."""
        return self._typed(text if text.startswith(WHOLE) else WHOLE + text)

    def _translated(self, error: Exception, number: int) -> Exception:
        """Return an error with ranks numbered over all hosts; the core numbers them within this host."""
        text = str(error.args[0]) if error.args else ""
        if self._first is not None and text == str(self._first):
            return self._first
        if isinstance(error, CollectiveAborted) and text.startswith(WHOLE):
            return self._typed(text)
        error = copy.copy(error)
        if not text.startswith(WHOLE) and isinstance(error, WorkerLostError):
            error.rank += self.hosts[self.host].begin
        text = text[1:] if text.startswith(WHOLE) else self._renumbered(text, number)
        error.args = (text, *error.args[1:])
        return error

    def _renumbered(self, text: str, number: int) -> str:
        begin = self.hosts[self.host].begin
        text = _CHECK.sub(r"\2", _COUNT.sub("", text))
        if number:
            text = _NUMBER.sub(rf"\g<1>{number}", text)
        return _RANKS.sub(lambda match: match[1] + re.sub(r"\d+", lambda n: str(int(n[0]) + begin), match[2]), text)

    def _typed(self, text: str) -> Exception:
        """Return the exception that corresponds to the text of a failure."""
        is_whole = text.startswith(WHOLE)
        text = text[1:] if is_whole else self._renumbered(text, 0)
        for rank, process in enumerate(self.identities):
            begin, _, reason = text.partition(f" ({process}) ")
            if reason and re.fullmatch(r"ranks? [\d, toandmre]+", begin):
                return WorkerLostError(text, rank, process.host, process.pid, re.split(r"[.;]", reason)[0])
        if any(phrase in text for phrase in _MISMATCH):
            return CollectiveMismatchError(text)
        return DeadlineExceededError(text) if _LATE in text else CollectiveAborted(text)
