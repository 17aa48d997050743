"""Groups whose ranks are processes of one machine."""

from __future__ import annotations

import math
import os
import sys
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from ringlet import _core
from ringlet.collectives.argument_parsing import as_text, whole_number, whole_number_of
from ringlet.collectives.member import Member
from ringlet.collectives.timeouts import resolve_timeout
from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.ipc.deadline import Deadline
from ringlet.rendezvous.job_key import MOST_PROCESSES, Job
from ringlet.rendezvous.membership import Meeting
from ringlet.rendezvous.rendezvous import meet

__all__ = ["MOST_RANKS", "init_process_group", "job_id", "join_job"]

RANK_VARIABLE = "RINGLET_RANK"
NUM_RANKS_VARIABLE = "RINGLET_NUM_RANKS"
JOB_VARIABLE = "RINGLET_JOB_ID"

# Of a group, in all its processes together.
MOST_RANKS = 4096

# For processes that have all come in time to look at each other.
_LAST_MOMENT_SECONDS = 0.2


@overload
def init_process_group(
    rank: int | None = None,
    num_ranks: int | None = None,
    name: str | None = None,
    timeout_seconds: float | None = None,
) -> Member: ...
@overload
def init_process_group(
    rank: None = None,
    num_ranks: int | None = None,
    name: str | None = None,
    timeout_seconds: float | None = None,
    *,
    ranks: Iterable[int],
) -> list[Member]: ...


def init_process_group(
    rank: int | None = None,
    num_ranks: int | None = None,
    name: str | None = None,
    timeout_seconds: float | None = None,
    *,
    ranks: Iterable[int] | None = None,
) -> Member | list[Member]:
    """Join the group of this job's processes on this machine, and wait until all of them have come.

    Each process calls this once for a group, with the ranks that it drives; each rank is then driven by one thread.
    They find each other by user, `name` and ``RINGLET_JOB_ID``, wherever they were started. Linux only.

    Parameters
    ----------
    rank : int, optional
        The rank of this process, from 0; by default ``RINGLET_RANK``.
    num_ranks : int, optional
        Number of ranks in all processes together; by default ``RINGLET_NUM_RANKS``.
    name : str, optional
        Keeps the groups of one job apart.
    timeout_seconds : float, optional
        How long to wait for the other processes here, and for the other ranks in each call; 0 for ever, None for the
        default of 600 s or ``RINGLET_TIMEOUT_SECONDS``.
    ranks : iterable of int, optional
        In the place of `rank`: several ranks, for a thread each.

    Returns
    -------
    Member or list of Member
        The calls of this rank; with `ranks` a list, in their order. Close them, or use them with ``with``.

    Raises
    ------
    InvalidArgumentError
        If a rank or the number of ranks is missing, or cannot be: a group has at most 4096 ranks in 1000 processes.
    FailedPreconditionError
        If this process cannot be of the group: another one holds its rank, runs another version of ringlet, was told
        another number of ranks, or is in another PID namespace.
    PermissionError
        If another user has taken the name.
    DeadlineExceededError
        If some ranks did not come in time; names them.
    WorkerLostError
        If a process that had come ended before all were there.

    Examples
    --------
    As ``RINGLET_RANK=0 RINGLET_NUM_RANKS=2 python step.py`` and the same with rank 1, or without variables as here:

    >>> import numpy as np
    >>> import ringlet
    >>> with ringlet.collectives.init_process_group(rank=0, num_ranks=1) as member:
    ...     member.all_reduce(np.ones(3))
    array([1., 1., 1.])
    """
    count, mine = _selection(rank, num_ranks, ranks, os.environ)
    seconds = resolve_timeout(timeout_seconds)
    if len(mine) == count:
        hold = _Hold(_core.Group(count, seconds, 0), None)
        members = [Member(hold.group.member(number), hold) for number in mine]
    else:
        members = join_job(Job(as_text(name or ""), job_id(os.environ), count), mine, seconds)
    return members if ranks is not None else members[0]


def job_id(environ: Mapping[str, str]) -> str:
    """Give what the launcher calls the job, which keeps jobs apart that are alike in all else.

    Examples
    --------
    >>> job_id({"RINGLET_JOB_ID": "second"})
    'second'
    """
    return as_text(environ.get(JOB_VARIABLE, ""))


def join_job(job: Job, ranks: Sequence[int], seconds: float) -> list[Member]:
    """Join the group of a job's processes, as :func:`init_process_group` does.

    Parameters
    ----------
    job : Job
        The same in all of them.
    ranks : sequence of int
        Those of this process; not all.
    seconds : float
        How long to wait for the others, here and in each call; may be infinite.

    Returns
    -------
    list of Member
        In the order of `ranks`.

    Raises
    ------
    FailedPreconditionError, PermissionError, DeadlineExceededError, WorkerLostError
        As there.
    """
    if sys.platform != "linux":
        raise FailedPreconditionError("groups of several processes need Linux: give one process all ranks.")
    deadline = Deadline.after(seconds)
    hold = _join(meet(job, ranks, seconds), job.num_ranks, deadline)
    return [Member(hold.group.member(number), hold) for number in ranks]


class _Hold:
    """What the members of one process share; given back when the last of them is closed or gone."""

    def __init__(self, group: _core.Group, meeting: Meeting | None) -> None:
        self.group = group
        self.meeting = meeting
        if meeting is not None:
            weakref.finalize(self, meeting.let_go).atexit = False  # the system takes it back then

    def abort(self, reason: str) -> None:
        """Make all ranks raise `CollectiveAborted`."""
        self.group.abort(reason)


def _join(meeting: Meeting, num_ranks: int, deadline: Deadline) -> _Hold:
    try:
        processes = [(list(peer.ranks), peer.identity.pid, peer.identity.host, *peer.take()) for peer in meeting.peers]
        world = _core.World(meeting.index, processes, meeting.token)
        epoch = int.from_bytes(meeting.token[:7], "little")
        left = max(deadline.left(math.inf), _LAST_MOMENT_SECONDS)
        return _Hold(_core.Group(num_ranks, deadline.seconds, epoch, world, seconds_left=left), meeting)
    except BaseException:
        meeting.close()
        raise


def _selection(
    rank: Any, num_ranks: Any, ranks: Iterable[Any] | None, environ: Mapping[str, str]
) -> tuple[int, list[int]]:
    """The number of ranks, and those of this process, as arguments or environment give them."""
    if rank is not None and ranks is not None:
        raise InvalidArgumentError(f"rank is {rank!r} and ranks is {ranks!r}: give one of them.")
    missing = []
    if rank is None and ranks is None and (rank := _variable(RANK_VARIABLE, environ)) is None:
        missing.append(f"rank= (or {RANK_VARIABLE})")
    if num_ranks is None and (num_ranks := _variable(NUM_RANKS_VARIABLE, environ)) is None:
        missing.append(f"num_ranks= (or {NUM_RANKS_VARIABLE})")
    if missing:
        raise InvalidArgumentError(
            f"{' and '.join(missing)} is missing: each process of a group says which rank it is, and of how many."
        )
    count = whole_number_of(32, num_ranks, "num_ranks", "a whole number of ranks")
    if not 1 <= count <= MOST_RANKS:
        raise InvalidArgumentError(f"a group has 1 to {MOST_RANKS} ranks, not {count}.")
    numbers = [
        whole_number(number, "rank", f"a whole number below {count}") for number in ([rank] if ranks is None else ranks)
    ]
    if ranks is None and count > MOST_PROCESSES:
        raise InvalidArgumentError(
            f"a group has at most {MOST_PROCESSES} processes, not {count} with a rank each: give each process several, "
            "with ranks=."
        )
    for number in numbers:
        if not 0 <= number < count:
            raise InvalidArgumentError(f"rank {number} is not in this group: its ranks are 0 to {count - 1}.")
    if not numbers or len(set(numbers)) < len(numbers):
        raise InvalidArgumentError(f"ranks is {numbers}: expected at least one rank, and none twice.")
    return count, numbers


def _variable(name: str, environ: Mapping[str, str]) -> int | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidArgumentError(f"{name} is {text!r}: expected a whole number.") from None
