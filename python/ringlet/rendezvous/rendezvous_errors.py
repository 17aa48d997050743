"""How a rendezvous ends that no group comes of: what is said to the user, and how it is found out."""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections.abc import Iterable

from ringlet import _core
from ringlet.errors import WorkerLostError
from ringlet.ipc.deadline import Deadline
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.messages import Unreadable, receive

__all__ = ["how_it_left", "last_words", "lost", "missing_text"]

# How long after its connection closed a process may take to end, so that its end can be told.
_END_SECONDS = 0.5


def last_words(connection: socket.socket) -> str | None:
    """Why a process left, if it has said so. A reset connection tells so once, before what is left to be read."""
    for _ in range(2):
        with contextlib.suppress(OSError, Unreadable):
            received = receive(connection)
            return None if received is None else str(received[0].get("why"))
    return None


def how_it_left(process: _core.Pidfd) -> str:
    """Say what happened to a process whose connection has closed."""
    if process.fileno() < 0:
        return "closed its connection"
    with selectors.DefaultSelector() as selector:
        selector.register(process, selectors.EVENT_READ)
        has_ended = bool(selector.select(_END_SECONDS))
    return process.how_it_ended() if has_ended else "closed its connection, although it lives"


def lost(job: Job, rank: int, pid: int, reason: str) -> WorkerLostError:
    """Make the error that tells of a process of this machine that had come and will not go on."""
    host = socket.gethostname()
    return WorkerLostError(
        f"{job.who([rank])} (pid {pid} on {host}) {reason}, before all of {job} had come together. All that "
        "had come raise this: find out why it left, and start the job again.",
        rank,
        host,
        pid,
        reason,
    )


def missing_text(job: Job, me: str, deadline: Deadline, came: set[int], notes: Iterable[str]) -> str:
    """Say which ranks did not come in time, and what may be the reason.

    Parameters
    ----------
    job : Job
        Whose ranks they are.
    me : str
        Who waited.
    deadline : Deadline
        How long.
    came : set of int
        The ranks that came; empty if this process has found nobody, so that it knows only that rank 0 is missing.
    notes : iterable of str
        What has been seen meanwhile, as sentences without their full stop.
    """
    missing = {*range(job.num_ranks)} - came if came else {0}
    here = f" ({job.who(came)} came)" if came else ""
    seen = "".join(f" {note}." for note in dict.fromkeys(notes))
    return (
        f"{me} waited {deadline} for {job.who(missing)} of {job}{here}.{seen} {job.start_alike}, on one machine and "
        "in one network namespace: processes of different containers cannot meet unless these share their network. "
        "Allow more time with timeout_seconds= or RINGLET_TIMEOUT_SECONDS."
    )
