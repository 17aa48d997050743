"""Rendezvous errors: messages of a failed rendezvous, and the reason why a process left."""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections.abc import Iterable

from ringlet import _core
from ringlet.errors import WorkerLostError
from ringlet.ipc.deadline import Deadline
from ringlet.rendezvous.handshake import Handshake
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.messages import Unreadable, receive

# Time to wait for the exit of a process whose connection has closed.
_END_SECONDS = 0.5


def departure_reason(connection: socket.socket) -> str | None:
    """Return the reason that a process sent before it left; None if it sent none."""
    # Read twice: a reset is reported once, before the unread data.
    for _ in range(2):
        with contextlib.suppress(OSError, Unreadable):
            received = receive(connection)
            return None if received is None else str(received[0].get("why"))
    return None


def how_it_left(process: _core.Pidfd) -> str:
    """Return how a process has closed its connection, as a predicate such as "exited with status 1"."""
    if process.fileno() < 0:
        return "closed its connection"
    with selectors.DefaultSelector() as selector:
        selector.register(process, selectors.EVENT_READ)
        has_ended = bool(selector.select(_END_SECONDS))
    return process.how_it_ended() if has_ended else "closed its connection, but is still running"


def lost(job: Job, rank: int, pid: int, reason: str) -> WorkerLostError:
    """Return the error for a process of this machine that left before the group was complete."""
    host = socket.gethostname()
    return WorkerLostError(
        f"{job.names_of([rank])} (pid {pid} on {host}) {reason}, before all of {job} had connected. All connected "
        "processes raise this error: find the cause in the output of that process, and start the job again.",
        rank,
        host,
        pid,
        reason,
    )


def waiting_text(job: Job, ours: Handshake, waited: str, came: set[int]) -> str:
    """Return text that names this process and, after the verb `waited`, the ranks that have not connected."""
    missing = {*range(job.num_ranks)} - came if came else {0}
    here = f" ({job.names_of(came)} connected)" if came - {*ours.ranks} else ""
    return f"{job.names_of(ours.ranks)} ({ours.identity}) {waited} for {job.names_of(missing)} of {job}{here}"


def missing_text(job: Job, ours: Handshake, deadline: Deadline, came: set[int], notes: Iterable[str]) -> str:
    """Return the message that names the ranks that did not connect in time.

    `ours` is the calling process. `came` holds the connected ranks; it is empty if no host was found, so that only rank
    0 is known to be missing. `notes` are sentences about what was observed, without full stops.
    """
    seen = "".join(f" {note}." for note in dict.fromkeys(notes))
    return (
        f"{waiting_text(job, ours, f'waited {deadline}', came)}.{seen} {job.start_alike}, on one machine "
        "and in one network namespace: processes of different containers connect only if these share their network. "
        "Allow more time with timeout_seconds= or RINGLET_TIMEOUT_SECONDS."
    )
