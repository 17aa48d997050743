"""What a process says first at a rendezvous, and why it may be sent away."""

from __future__ import annotations

import importlib.metadata
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ringlet.rendezvous.job_key import Job, ranks_text
from ringlet.rendezvous.messages import Message, Unreadable
from ringlet.rendezvous.process_identity import ProcessIdentity

__all__ = ["Hello", "held_by"]

_PROTOCOL = 1  # of the rendezvous and of what the processes share after it


@dataclass(frozen=True)
class Hello:
    """One process, with what it was told about its job.

    Attributes
    ----------
    version : str
        Of ringlet, with the number of the protocol.
    num_ranks : int
        Size of the group.
    ranks : tuple of int
        Those that this process drives, in ascending order.
    nonce : str
        Chosen at random for each attempt to meet.
    identity : ProcessIdentity
        Which process it is.
    """

    version: str
    num_ranks: int
    ranks: tuple[int, ...]
    nonce: str
    identity: ProcessIdentity

    @classmethod
    def of_this_process(cls, job: Job, ranks: Sequence[int]) -> Hello:
        """Make the hello that the calling process says."""
        version = f"{importlib.metadata.version('ringlet')}, protocol {_PROTOCOL}"
        return cls(
            version, job.num_ranks, tuple(sorted(ranks)), secrets.token_hex(8), ProcessIdentity.of_this_process()
        )

    def as_message(self) -> Message:
        """Give it as a message."""
        return {
            "kind": "hello",
            "ringlet": self.version,
            "num_ranks": self.num_ranks,
            "ranks": list(self.ranks),
            "nonce": self.nonce,
            "process": self.identity.as_record(),
        }

    @classmethod
    def from_message(cls, message: Message, version: str) -> Hello:
        """Read what a stranger said.

        Only a hello of our own version is sure to mean what we think; of others the version alone is read.

        Raises
        ------
        Unreadable
            If it is none.
        """
        if message.get("kind") != "hello" or not isinstance(message.get("ringlet"), str):
            raise Unreadable("no hello")
        if message["ringlet"] != version:
            return cls(message["ringlet"], 0, (), "", ProcessIdentity(0, 0, "", "", "", ""))
        num_ranks, ranks, nonce = (message.get(key) for key in ("num_ranks", "ranks", "nonce"))
        if type(num_ranks) is not int or type(nonce) is not str or not isinstance(ranks, list) or not ranks:
            raise Unreadable("a hello with values of other types")
        if any(type(rank) is not int or not 0 <= rank < num_ranks for rank in ranks) or ranks != sorted(set(ranks)):
            raise Unreadable("a hello with ranks that cannot be")
        try:
            identity = ProcessIdentity.from_record(message.get("process"))
        except ValueError as error:
            raise Unreadable(str(error)) from None
        return cls(version, num_ranks, tuple(ranks), nonce, identity)

    def objection_to(self, other: Hello, other_pid: int, job: Job) -> str | None:
        """Say why another process cannot join the group that this one gathers, whoever is there already.

        Parameters
        ----------
        other : Hello
            What it says.
        other_pid : int
            Its number, as the system tells it; 0 if it has none here.
        job : Job
            Whose group this one gathers.

        Returns
        -------
        str or None
            A message for the other one; None if there is nothing to object to.
        """
        me = f"{job.who(self.ranks[:1])} ({self.identity})"
        if other.version != self.version:
            return (
                f"{me}, which gathers this group, runs ringlet {self.version}; pid {other_pid} runs ringlet "
                f"{other.version}: install one version for all."
            )
        # Who counts other ranks than we do has no name among ours.
        who = job.who(other.ranks) if other.ranks[-1] < self.num_ranks else ranks_text(other.ranks)
        you = f"{who} ({other.identity})"
        if other.identity.boot_id != self.identity.boot_id:
            return f"{you} runs on another machine than {me}: a group of processes has all of them on one machine."
        if other.identity.pid_namespace != self.identity.pid_namespace or other_pid != other.identity.pid:
            return (
                f"{you} runs in another PID namespace (another container) than {me}: they cannot see each other end. "
                "Start all in one container, or give the containers one PID namespace (docker run --pid=)."
            )
        if other.num_ranks != self.num_ranks:
            return (
                f"{you} was started with num_ranks={other.num_ranks}, but {me} with num_ranks={self.num_ranks}: give "
                f"all ranks of a job the same number; if these are two jobs, {job.KEEP_APART}."
            )
        return None


def held_by(taken: Iterable[int], holder: ProcessIdentity, job: Job) -> str:
    """Say who has ranks that another process asks for."""
    if holder.has_ended():
        return (
            f"{job.who(taken)} was held by {holder}, which has ended, so its group is over: end what is left of it, "
            "and start all again."
        )
    seconds = holder.seconds_since_start()
    since = "" if seconds is None else f", started {seconds:.0f} s ago"
    return f"{job.who(taken)} is held by {holder}{since}: {job.taken}."
