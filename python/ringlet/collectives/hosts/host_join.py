"""Rendezvous of a group over several hosts: every process introduces itself to the first, which answers with all."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import platform
import secrets
import sys
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ringlet.cluster.environment import Placement
from ringlet.collectives.hosts.host_group import HostGroup, hosts_of
from ringlet.collectives.hosts.host_link import HostLink
from ringlet.collectives.hosts.host_member import HostMember
from ringlet.collectives.hosts.mpi_transport import PeerFailed, Request, Transport, mpi_transport
from ringlet.collectives.member import Member
from ringlet.errors import DeadlineExceededError, FailedPreconditionError, WorkerLostError
from ringlet.ipc.deadline import Deadline
from ringlet.ipc.inbox import Inbox
from ringlet.rendezvous.connected_group import ConnectedGroup
from ringlet.rendezvous.job_key import Job, ranks_text
from ringlet.rendezvous.process_identity import ProcessIdentity

__all__ = ["join_over_hosts"]

_HELLO, _ANSWER = 5, 6
_NUM_TAGS = 1 << 20
_TAGS_OF_A_GROUP = 8
_LONGEST_BYTES = 1 << 24
_PAUSE_SECONDS = 0.001
_LAST_SECONDS = 1.0  # for the answer of the first process after its time-out

# Makes the group of the ranks of one host.
JoinLocally = Callable[[Job, Sequence[int], float], Any]


def join_over_hosts(
    job: Job, ranks: Sequence[int], seconds: float, place: Placement, join_locally: JoinLocally
) -> list[Member]:
    """Join a group of all processes of an MPI job; see `init_process_group`."""
    return join(mpi_transport(place), job, ranks, seconds, join_locally)


def join(
    transport: Transport,
    job: Job,
    ranks: Sequence[int],
    seconds: float,
    join_locally: JoinLocally,
    *,
    identity: ProcessIdentity | None = None,
) -> list[Member]:
    """Join a group of all processes of a transport."""
    deadline = Deadline.after(seconds)
    identity = identity or ProcessIdentity.of_this_process()
    tag = zlib.crc32(json.dumps([job.name, job.job_id]).encode()) % _NUM_TAGS
    answer = _introduce(transport, job, _introduction(job, ranks, identity), tag, deadline)
    records = answer["processes"]
    identities = [ProcessIdentity.from_record(record["process"]) for record in records]
    hosts = hosts_of([(record["ranks"], identity) for record, identity in zip(records, identities, strict=True)])
    host = next(number for number, each in enumerate(hosts) if each.begin <= min(ranks) < each.end)
    own = hosts[host]
    local_job = Job(f"{job.name} host {host} {answer['epoch']}", job.job_id, own.end - own.begin)
    local = join_locally(local_job, [rank - own.begin for rank in ranks], max(deadline.left(seconds), _LAST_SECONDS))
    of_rank = {rank: identities[process] for process, record in enumerate(records) for rank in record["ranks"]}
    group = HostGroup(local.group, hosts, host, [of_rank[rank] for rank in sorted(of_rank)], answer["epoch"])
    link = HostLink(
        transport,
        [each.leader for each in hosts],
        host,
        epoch=answer["epoch"],
        tag=tag,
        seconds=seconds,
        check=group.check,
        lost=lambda failed: group.lost([min(records[process]["ranks"]) for process in failed]),
        on_notice=group.read_notice,
        names=[str(each) for each in hosts],
    )
    group.notify = link.notify
    share = _HostShare(group, link, local, seconds)
    return [Member(share.core(rank), share, share) for rank in ranks]


class _HostShare:
    """Resources that the members of one process share, and their messages."""

    def __init__(self, group: HostGroup, link: HostLink, local: Any, seconds: float) -> None:
        self.group = group
        self.seconds = seconds
        self.connected: ConnectedGroup | None = local.connected
        self._link = link
        self._local = local
        self._begin = group.hosts[group.host].begin

    def core(self, rank: int) -> Any:
        """Return the interface of a rank."""
        return HostMember(
            self.group.local.member(rank - self.group.hosts[self.group.host].begin), self.group, self._link
        )

    def abort(self, reason: str) -> None:
        """Make all ranks raise `CollectiveAborted`."""
        self.group.abort(reason)

    def __call__(self, rank: int) -> Inbox:
        """Raise an error: there are no messages between hosts yet."""
        raise NotImplementedError(
            "send and recv are not available for a group over several hosts in this version: use all_to_all or "
            "collective_permute, or start all ranks on one host."
        )

    def failure(self, text: str) -> Exception:
        """Return the error about the failure of the group."""
        return self.group.first or Exception(text)

    def close(self, rank: int, seconds: float = 0) -> list[str]:
        """Close the messages of a rank within its host."""
        unfinished: list[str] = self._local.close_inbox(rank - self._begin, seconds)
        return unfinished

    def open_part(self) -> Inbox:
        """Return an inbox for a rank of a part."""
        return Inbox()

    def join_part(self, inbox: Inbox, rank: int, ranks: Sequence[int], labels: Sequence[int]) -> Any:
        """Raise an error."""
        return self(rank)


# --- introductions ----------------------------------------------------------------------------------------------------


def _introduction(job: Job, ranks: Sequence[int], identity: ProcessIdentity) -> dict[str, Any]:
    return {
        "ranks": sorted(ranks),
        "num_ranks": job.num_ranks,
        "versions": f"ringlet {importlib.metadata.version('ringlet')}, Python {platform.python_version()}, NumPy "
        f"{np.__version__}, {sys.byteorder} endian",
        "process": identity.as_record(),
    }


def _introduce(transport: Transport, job: Job, mine: dict[str, Any], tag: int, deadline: Deadline) -> dict[str, Any]:
    """Exchange the introductions of all processes, and return them with the epoch of the group."""
    first = tag * _TAGS_OF_A_GROUP
    if transport.rank == 0:
        records = {0: mine}
        while len(records) < transport.size and not deadline.is_over() and not transport.failed():
            found = transport.poll(first + _HELLO)
            if found is None:
                time.sleep(_PAUSE_SECONDS)
            else:
                records[found[0]] = json.loads(found[1])
        answer = _answer(transport, job, records, deadline)
        data = np.frombuffer(json.dumps(answer).encode(), np.uint8)
        sent = [transport.send(data, process, first + _ANSWER) for process in records if process]
        _wait(sent, Deadline.after(_LAST_SECONDS))
    else:
        sent = [transport.send(np.frombuffer(json.dumps(mine).encode(), np.uint8), 0, first + _HELLO)]
        until = dataclasses.replace(deadline, ends_at=deadline.ends_at + _LAST_SECONDS)
        while (
            (found := transport.poll(first + _ANSWER)) is None and not until.is_over() and 0 not in transport.failed()
        ):
            time.sleep(_PAUSE_SECONDS)
        if found is None:
            transport.give_up()
            text = f"{ranks_text(mine['ranks'])} waited {deadline} for the process that makes {job}, process 0 of MPI"
            if 0 in transport.failed():
                raise WorkerLostError(f"{text}, which was lost. Start the job again.", 0, "", -1, "was lost")
            raise DeadlineExceededError(f"{text}. {job.start_alike}, or allow more with timeout_seconds=.")
        _wait(sent, deadline)
        answer = json.loads(found[1])
    if "error" in answer:
        transport.give_up()
        kinds = {kind.__name__: kind for kind in (DeadlineExceededError, FailedPreconditionError, WorkerLostError)}
        raise kinds[answer["kind"]](answer["error"])
    return answer


def _wait(requests: Sequence[Request], deadline: Deadline) -> None:
    for request in requests:
        try:
            while request.test() is None and not deadline.is_over():
                time.sleep(_PAUSE_SECONDS)
        except PeerFailed:
            continue  # its loss is reported by the first call


def _answer(
    transport: Transport, job: Job, records: Mapping[int, dict[str, Any]], deadline: Deadline
) -> dict[str, Any]:
    """Return the introductions in the order of processes, or the reason why the group cannot be made."""
    try:
        _check(transport, job, records, deadline)
    except (DeadlineExceededError, FailedPreconditionError, WorkerLostError) as error:
        return {"error": str(error), "kind": type(error).__name__}
    return {"processes": [records[process] for process in range(transport.size)], "epoch": secrets.randbits(56)}


def _check(transport: Transport, job: Job, records: Mapping[int, dict[str, Any]], deadline: Deadline) -> None:
    missing = [process for process in range(transport.size) if process not in records]
    given = sorted(rank for record in records.values() for rank in record["ranks"])
    if missing:
        lacks = set(range(job.num_ranks)) - set(given)
        names = f"{ranks_text(lacks) if lacks else 'processes'} of {job} (processes {missing} of MPI)"
        if set(missing) & set(transport.failed()):
            raise WorkerLostError(f"{names} ended before all had connected. Start the job again.")
        raise DeadlineExceededError(
            f"waited {deadline} for {names}. {job.start_alike}, in all processes of the MPI job, or allow more with "
            "timeout_seconds=."
        )
    first = records[0]
    for record in records.values():
        if record["versions"] != first["versions"]:
            raise FailedPreconditionError(
                f"{_name(record)} runs {record['versions']}; {_name(first)} runs {first['versions']}: install the same "
                "versions on every host."
            )
        if record["num_ranks"] != first["num_ranks"]:
            raise FailedPreconditionError(
                f"{_name(record)} was started with num_ranks={record['num_ranks']}, but {_name(first)} with "
                f"num_ranks={first['num_ranks']}: pass the same number in all processes."
            )
    if given != list(range(job.num_ranks)):
        raise FailedPreconditionError(
            f"the {transport.size} processes of MPI have the ranks {given}: a group over several hosts has the ranks 0 "
            f"to {job.num_ranks - 1} once each, in all processes of the MPI job."
        )
    try:
        hosts_of([(record["ranks"], ProcessIdentity.from_record(record["process"])) for record in records.values()])
    except ValueError as error:
        raise FailedPreconditionError(
            f"{error}: the ranks of a host must follow each other. Start the job with --map-by slot for mpiexec of "
            "Open MPI, or with --distribution=block for srun."
        ) from None


def _name(record: Mapping[str, Any]) -> str:
    return f"{ranks_text(record['ranks'])} ({ProcessIdentity.from_record(record['process'])})"
