"""Handshake: the first message of a process in a rendezvous, and the reasons to reject it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ringlet.rendezvous.job_key import Job, ranks_text
from ringlet.rendezvous.messages import Message, Unreadable
from ringlet.rendezvous.process_identity import ProcessIdentity
from ringlet.version import __version__

_PROTOCOL = 1  # version of the rendezvous protocol and of the shared memory layout


@dataclass(frozen=True)
class Handshake:
    """One process and its view of the job.

    `version` contains the versions of ringlet and of the protocol, `ranks` are the ranks that the process drives, in
    ascending order, and `nonce` is a new random string for each rendezvous.
    """

    version: str
    num_ranks: int
    ranks: tuple[int, ...]
    nonce: str
    identity: ProcessIdentity

    @classmethod
    def of_this_process(cls, job: Job, ranks: Sequence[int]) -> Handshake:
        """Return the handshake of the calling process."""
        version = f"{__version__}, protocol {_PROTOCOL}"
        return cls(
            version, job.num_ranks, tuple(sorted(ranks)), secrets.token_hex(8), ProcessIdentity.of_this_process()
        )

    def as_message(self) -> Message:
        """Return the handshake as a message."""
        return {
            "kind": "handshake",
            "ringlet": self.version,
            "num_ranks": self.num_ranks,
            "ranks": list(self.ranks),
            "nonce": self.nonce,
            "process": self.identity.as_record(),
        }

    @classmethod
    def from_message(cls, message: Message, version: str) -> Handshake:
        """Parse an untrusted message. If its version differs from `version`, only the version is read."""
        if message.get("kind") != "handshake" or not isinstance(message.get("ringlet"), str):
            raise Unreadable("not a handshake")
        if message["ringlet"] != version:
            return cls(message["ringlet"], 0, (), "", ProcessIdentity(0, 0, "", "", "", ""))
        num_ranks, ranks, nonce = (message.get(key) for key in ("num_ranks", "ranks", "nonce"))
        if type(num_ranks) is not int or type(nonce) is not str or not isinstance(ranks, list) or not ranks:
            raise Unreadable("the values of the handshake have wrong types")
        if any(type(rank) is not int or not 0 <= rank < num_ranks for rank in ranks) or ranks != sorted(set(ranks)):
            raise Unreadable("the handshake has invalid ranks")
        try:
            identity = ProcessIdentity.from_record(message.get("process"))
        except ValueError as error:
            raise Unreadable(str(error)) from None
        return cls(version, num_ranks, tuple(ranks), nonce, identity)

    def rejection_of(self, other: Handshake, other_pid: int, job: Job) -> str | None:
        """Return why another process cannot join the group that this process hosts; None if it can.

        `other_pid` is the pid that the kernel reports, which is 0 for a process of an unrelated PID namespace.
        """
        me = f"{job.names_of(self.ranks[:1])} ({self.identity})"
        if other.version != self.version:
            return (
                f"{me}, the host of this group, runs ringlet {self.version}; pid {other_pid} runs ringlet "
                f"{other.version}: install the same version for all ranks."
            )
        # Ranks beyond this process's number of ranks have no names in this job.
        names = job.names_of(other.ranks) if other.ranks[-1] < self.num_ranks else ranks_text(other.ranks)
        you = f"{names} ({other.identity})"
        if other.identity.boot_id != self.identity.boot_id:
            return f"{you} and {me} run on different machines: start all processes of a group on one machine."
        if other.identity.pid_namespace != self.identity.pid_namespace or other_pid != other.identity.pid:
            return (
                f"{you} and {me} run in different PID namespaces (containers): processes must be able to detect "
                "each other's exit. Start all in one container, or in one PID namespace (docker run --pid=)."
            )
        if other.num_ranks != self.num_ranks:
            return (
                f"{you} was started with {job.size_text(other.num_ranks)}, but {me} with "
                f"{job.size_text(self.num_ranks)}: start all processes with the same number; if they belong to two "
                f"jobs, {job.KEEP_APART}."
            )
        return None


def held_by(taken: Iterable[int], holder: ProcessIdentity, job: Job) -> str:
    """Return the reason for refusing ranks that another process holds."""
    if holder.has_ended():
        return (
            f"{job.names_of(taken)} was held by {holder}, which has exited, so its group has failed: end its remaining "
            "processes, and start all ranks again."
        )
    seconds = holder.seconds_since_start()
    since = "" if seconds is None else f", started {seconds:.0f} s ago"
    return f"{job.names_of(taken)} is held by {holder}{since}: {job.taken}."
