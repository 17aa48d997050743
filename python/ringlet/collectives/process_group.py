"""Groups of ranks in several processes, of one machine or of an MPI job on several hosts."""

from __future__ import annotations

import math
import os
import sys
import weakref
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, overload

from ringlet import _core
from ringlet.cluster.cluster_queries import check_workers, id_in_cluster, worker_count
from ringlet.cluster.environment import Placement, check_one_machine, hosts_placement, job_id_of, placement
from ringlet.cluster.resolvers.tf_config_resolver import TFConfigClusterResolver
from ringlet.collectives.argument_parsing import as_text, whole_number, whole_number_of
from ringlet.collectives.member import Member
from ringlet.collectives.message_passing import ThreadInboxes
from ringlet.collectives.process_messages import ProcessInbox, process_inboxes
from ringlet.collectives.timeouts import resolve_timeout
from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.ipc.deadline import Deadline
from ringlet.observe.stall_reports import report_stalls
from ringlet.rendezvous.connected_group import ConnectedGroup
from ringlet.rendezvous.job_key import MOST_PROCESSES, Job
from ringlet.rendezvous.rendezvous import rendezvous

RANK_VARIABLE = "RINGLET_RANK"
NUM_RANKS_VARIABLE = "RINGLET_NUM_RANKS"

# Maximum number of ranks in all processes of a group.
MOST_RANKS = 4096

# Minimum time to map each other's memory, for processes that rendezvoused just before the deadline.
_LAST_MOMENT_SECONDS = 0.2


@overload
def init_process_group(
    rank: int | None = None, num_ranks: int | None = None, name: str | None = None, timeout_seconds: float | None = None
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
    """Join the process group of this job, and wait until all its processes have joined.

    Each process calls this function once for each group, with its ranks; each rank is then driven by one thread.
    Processes are matched by user, `name` and ``RINGLET_JOB_ID``, however they were started. Linux only.

    Parameters
    ----------
    rank : int, optional
        The rank of this process, from 0; by default taken from the environment: ``ringlet run``, ``TF_CONFIG``,
        ``RINGLET_RANK``, torchrun, mpirun or srun.
    num_ranks : int, optional
        Total number of ranks; by default taken from the environment (with `ranks`, only from ``RINGLET_NUM_RANKS``).
    name : str, optional
        Distinguishes the groups of one job.
    timeout_seconds : float, optional
        Maximum wait for the other processes to join, and for the other ranks in each call; 0 for no limit, None for the
        default of 600 s or ``RINGLET_TIMEOUT_SECONDS``.
    ranks : iterable of int, optional
        Instead of `rank`: several ranks of this process, one thread each.

    Returns
    -------
    Member or list of Member
        The handle of the rank; with `ranks`, a list in the same order. Close each, or use it in a ``with`` statement.

    Raises
    ------
    InvalidArgumentError
        If a rank or the number of ranks is missing or out of range: a group has at most 4096 ranks in 1000 processes.
    ClusterConfigError
        If the environment gives a rank that is not below its number of processes, or ``TF_CONFIG`` cannot be parsed.
    FailedPreconditionError
        If this process cannot join the group: another process holds its rank, runs another version of ringlet, or is
        in another PID namespace. Also raised in all processes if their `num_ranks` differ.
    PermissionError
        If another user has taken the name.
    DeadlineExceededError
        If ranks did not join in time; the message names them.
    WorkerLostError
        If a process exited before all had joined.

    Examples
    --------
    A group of one process; in a job, the environment provides the rank and the number of ranks:

    >>> import numpy as np
    >>> import ringlet
    >>> with ringlet.collectives.init_process_group(rank=0, num_ranks=1) as member:
    ...     member.all_reduce(np.ones(3))
    array([1., 1., 1.])
    """
    count, mine = _selection(rank, num_ranks, ranks, os.environ)
    seconds = resolve_timeout(timeout_seconds)
    identity = job_id(os.environ) if len(mine) < count else ""  # a single process needs no job id
    members = join_job(Job(as_text(name or ""), identity, count), mine, seconds)
    return members if ranks is not None else members[0]


def job_id(environ: Mapping[str, str]) -> str:
    """Return ``RINGLET_JOB_ID``, else the launcher's job id, which distinguishes otherwise equal jobs; may be empty."""
    return as_text(job_id_of(environ))


def join_job(job: Job, ranks: Sequence[int], seconds: float) -> list[Member]:
    """Join the process group of a job with some of its ranks; see :func:`init_process_group`."""
    if len(ranks) == job.num_ranks:
        alone = _join_here(job, ranks, seconds)
        inboxes = ThreadInboxes(range(job.num_ranks), seconds)
        return [Member(alone.group.member(number), inboxes, alone) for number in ranks]
    if sys.platform != "linux":
        raise FailedPreconditionError(
            "groups of several processes require Linux: pass all ranks to one process with ranks=."
        )
    return join_processes(job, ranks, seconds, hosts_placement(os.environ))


def join_processes(
    job: Job,
    ranks: Sequence[int],
    seconds: float,
    place: Placement | None,
    processes: Sequence[int] | None = None,
) -> list[Member]:
    """Join a process group on this host or, with `place`, a group of `processes` (default: all) of an MPI job."""
    if place is not None:
        from ringlet.collectives.hosts.host_join import join
        from ringlet.collectives.hosts.mpi_transport import mpi_transport

        return join(mpi_transport(place), job, ranks, seconds, _join_here, processes=processes)
    hold = _join_here(job, ranks, seconds)
    return [Member(hold.group.member(number), hold.inboxes[number], hold) for number in ranks]


def _join_here(job: Job, ranks: Sequence[int], seconds: float) -> _ProcessShare:
    """Join a group of processes of this host, or of this process alone."""
    if len(ranks) == job.num_ranks:
        return _ProcessShare(_core.Group(job.num_ranks, seconds, 0, stall_seconds=report_stalls()))
    deadline = Deadline.after(seconds)
    return _join(rendezvous(job, ranks, seconds), job.num_ranks, deadline)


class _ProcessShare:
    """Resources shared by the members of one process; released when the last member is closed or freed."""

    def __init__(
        self,
        group: _core.Group,
        connected: ConnectedGroup | None = None,
        inboxes: Mapping[int, ProcessInbox] = MappingProxyType({}),
    ) -> None:
        self.group = group
        self.connected = connected
        self.inboxes = inboxes
        for inbox in inboxes.values():
            weakref.finalize(self, inbox.close).atexit = False
        if connected is not None:
            weakref.finalize(self, connected.release).atexit = False  # at exit the system closes the connection

    def abort(self, reason: str) -> None:
        self.group.abort(reason)


def _join(connected: ConnectedGroup, num_ranks: int, deadline: Deadline) -> _ProcessShare:
    inboxes: dict[int, ProcessInbox] = {}
    try:
        stall_seconds = report_stalls()
        # Created before the group forms, so that each joined rank can send to all ranks.
        inboxes = process_inboxes(connected, deadline.seconds)
        processes = [
            (list(peer.ranks), peer.identity.pid, peer.identity.host, *peer.take()) for peer in connected.peers
        ]
        world = _core.World(connected.index, processes, connected.token)
        epoch = int.from_bytes(connected.token[:7], "little")
        left = max(deadline.left(math.inf), _LAST_MOMENT_SECONDS)
        return _ProcessShare(
            _core.Group(num_ranks, deadline.seconds, epoch, world, seconds_left=left, stall_seconds=stall_seconds),
            connected,
            inboxes,
        )
    except BaseException:
        for inbox in inboxes.values():
            inbox.close()
        connected.close()
        raise


def _selection(
    rank: Any, num_ranks: Any, ranks: Iterable[Any] | None, environ: Mapping[str, str]
) -> tuple[int, list[int]]:
    if rank is not None and ranks is not None:
        raise InvalidArgumentError(f"rank is {rank!r} and ranks is {ranks!r}: pass only one of them.")
    needs_rank = rank is None and ranks is None
    if needs_rank or num_ranks is None:
        place = placement(environ)
        given = _of_environment(place, environ)
        rank = given[0] if needs_rank else rank
        # With several ranks in a process, the number of processes in the environment is not the number of ranks.
        if num_ranks is None:
            num_ranks = given[1] if ranks is None else _variable(NUM_RANKS_VARIABLE, environ)
        lone = "" if "RANK" not in environ or "WORLD_SIZE" in environ else "RANK without WORLD_SIZE"
        _check_given(needs_rank and rank is None, num_ranks is None, place.note or lone)
    count = whole_number_of(32, num_ranks, "num_ranks", "an integer")
    if not 1 <= count <= MOST_RANKS:
        raise InvalidArgumentError(f"num_ranks is {count}: a group has 1 to {MOST_RANKS} ranks.")
    numbers = [
        whole_number(number, "rank", f"an integer below {count}") for number in ([rank] if ranks is None else ranks)
    ]
    if ranks is None and count > MOST_PROCESSES:
        raise InvalidArgumentError(
            f"{count} processes of one rank each are too many for a group, which has at most {MOST_PROCESSES}: pass "
            "several ranks to each process with ranks=."
        )
    for number in numbers:
        if not 0 <= number < count:
            raise InvalidArgumentError(f"rank {number} is not in this group: its ranks are 0 to {count - 1}.")
    if not numbers or len(set(numbers)) < len(numbers):
        raise InvalidArgumentError(f"ranks is {numbers}: expected at least one rank, without duplicates.")
    return count, numbers


def _of_environment(place: Placement, environ: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Return the rank and the number of ranks from the environment; None for a number that is not set."""
    if place.config is not None and place.config.cluster_spec:
        resolver = TFConfigClusterResolver(environ=environ)
        spec, task = place.config.cluster_spec, (place.config.task_type, place.config.task_id)
        check_workers(spec, *task, resolver)
        return id_in_cluster(spec, *task), worker_count(spec, task[0])
    check_one_machine(place)
    if place.source and place.config is None:
        return place.rank, place.size
    return _variable(RANK_VARIABLE, environ), _variable(NUM_RANKS_VARIABLE, environ)


def _check_given(lacks_rank: bool, lacks_number: bool, note: str) -> None:
    missing = [
        f"{name}= (or {variable})"
        for name, variable, is_missing in (
            ("rank", RANK_VARIABLE, lacks_rank),
            ("num_ranks", NUM_RANKS_VARIABLE, lacks_number),
        )
        if is_missing
    ]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        found = f" Found {note}." if note else ""
        raise InvalidArgumentError(
            f"{' and '.join(missing)} {verb} missing: each process of a group needs its rank and the number of ranks."
            f"{found} Start the processes with `ringlet run -n N script.py`, ringlet.launch(fn, N), mpirun, torchrun "
            "or srun, or pass both."
        )


def _variable(name: str, environ: Mapping[str, str]) -> int | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidArgumentError(f"{name} is {text!r}: expected an integer.") from None
