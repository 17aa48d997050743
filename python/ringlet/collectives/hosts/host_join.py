"""Rendezvous of a group over several hosts.

Every process sends a description of itself to the first process, which checks the descriptions and sends all of them
back.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import secrets
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ringlet.collectives.collective_dtypes import dtype_named
from ringlet.collectives.hosts.host_group import HostGroup, hosts_of
from ringlet.collectives.hosts.host_link import HostLink
from ringlet.collectives.hosts.host_member import EPOCH_BITS, HostMember, leave_at_exit, linked, new_tag
from ringlet.collectives.hosts.host_messages import HostInbox, HostInboxes, hub_of
from ringlet.collectives.hosts.mpi_transport import PeerFailed, Request, Transport
from ringlet.collectives.member import Member
from ringlet.errors import DeadlineExceededError, FailedPreconditionError, WorkerLostError
from ringlet.ipc.deadline import Deadline
from ringlet.rendezvous.connected_group import ConnectedGroup
from ringlet.rendezvous.job_key import Job, ranks_text
from ringlet.rendezvous.process_identity import ProcessIdentity
from ringlet.version import __version__

_HELLO_TAG, _ANSWER_TAG = 1, 2
_PAUSE_SECONDS = 0.001
_LAST_SECONDS = 1.0  # extra time for the first process's answer, after the time-out

# A function that joins the group of the ranks of one host.
JoinLocally = Callable[[Job, Sequence[int], float], Any]


def join(
    transport: Transport,
    job: Job,
    ranks: Sequence[int],
    seconds: float,
    join_locally: JoinLocally,
    *,
    identity: ProcessIdentity | None = None,
    processes: Sequence[int] | None = None,
) -> list[Member]:
    """Join a group of `processes`, by default all, of a transport; see `init_process_group`."""
    deadline = Deadline.after(seconds)
    processes = sorted(processes or range(transport.size))
    identity = identity or ProcessIdentity.of_this_process()
    network_dtype, problem = None, ""
    try:
        network_dtype = network_dtype_of(os.environ)
    except (ImportError, ValueError) as error:
        problem = str(error)  # raised by all processes, which would otherwise wait for this one
    of_program = transport.sockets()
    hub = hub_of(transport)
    inboxes = {rank: HostInbox(hub) for rank in sorted(ranks)}
    answer = _introduce(
        transport, processes, job, _introduction(job, inboxes, identity, network_dtype, problem), deadline
    )
    transport.watch_connections(of_program)  # watches the connections that the rendezvous has opened
    records = answer["processes"]
    identities = [ProcessIdentity.from_record(record["process"]) for record in records]
    hosts = hosts_of([(record["ranks"], identity) for record, identity in zip(records, identities, strict=True)])
    host = next(number for number, each in enumerate(hosts) if each.begin <= min(ranks) < each.end)
    own = hosts[host]
    local_job = Job(f"{job.name} host {host} {answer['epoch']}", job.job_id, own.end - own.begin)
    local = join_locally(local_job, [rank - own.begin for rank in ranks], max(deadline.left(seconds), _LAST_SECONDS))
    found = sorted(
        (rank, label, index)
        for index, record in enumerate(records)
        for rank, label in zip(record["ranks"], record["labels"], strict=True)
    )
    group = HostGroup(
        local.group,
        hosts,
        host,
        [identities[index] for _, _, index in found],
        [processes[index] for _, _, index in found],
        epoch=answer["epoch"],
        network_dtype=network_dtype,
    )
    link = linked(transport, group, answer["tag"], seconds)
    addresses = [(processes[index], label) for _, label, index in found]
    mailboxes = HostInboxes(hub, group, inboxes, addresses, seconds=seconds, numbers=range(len(found)))
    share = _HostShare(group, link, local)
    weakref.finalize(share, link.leave, "freed its member").atexit = False
    for inbox in inboxes.values():
        weakref.finalize(share, inbox.close).atexit = False
    cores = [HostMember(local.group.member(rank - own.begin), group, link) for rank in ranks]
    leave_at_exit(cores)
    return [Member(cast(Any, core), mailboxes, share) for core in cores]


class _HostShare:
    def __init__(self, group: HostGroup, link: HostLink, local: Any) -> None:
        self.connected: ConnectedGroup | None = local.connected
        self._group = group
        self._link = link  # keeps the link alive
        self._local = local

    def abort(self, reason: str) -> None:
        self._group.abort(reason)


# --- rendezvous -------------------------------------------------------------------------------------------------------


def network_dtype_of(environ: Mapping[str, str]) -> np.dtype[Any] | None:
    """Return the dtype in which RINGLET_NETWORK_DTYPE makes hosts exchange float32; None for float32 itself."""
    name = environ.get("RINGLET_NETWORK_DTYPE", "").strip() or "float32"
    if name not in ("float32", "bfloat16"):
        raise ValueError(
            f"RINGLET_NETWORK_DTYPE is {name!r}: expected bfloat16, which halves the bytes that sums and means of "
            "float32 send between hosts, or float32, the default, which keeps their precision."
        )
    return None if name == "float32" else dtype_named(name)


def _introduction(
    job: Job,
    inboxes: Mapping[int, HostInbox],
    identity: ProcessIdentity,
    network_dtype: np.dtype[Any] | None,
    problem: str,
) -> dict[str, Any]:
    return {
        "group": json.dumps([job.name, job.job_id]),
        "ranks": list(inboxes),
        "labels": [inbox.label for inbox in inboxes.values()],
        "num_ranks": job.num_ranks,
        "versions": f"ringlet {__version__}, Python {platform.python_version()}, NumPy "
        f"{np.__version__}, {sys.byteorder} endian",
        "network_dtype": "float32" if network_dtype is None else network_dtype.name,
        "problem": problem,
        "process": identity.as_record(),
    }


def _introduce(
    transport: Transport, processes: Sequence[int], job: Job, mine: dict[str, Any], deadline: Deadline
) -> dict[str, Any]:
    """Exchange the descriptions of all processes, and return them with the epoch and the tag of the group."""
    group, first = mine["group"], processes[0]
    if transport.rank == first:
        records = {first: mine}
        while len(records) < len(processes) and not deadline.is_over() and not transport.failed():
            if (found := _next(transport, _HELLO_TAG, group)) is None:
                time.sleep(_PAUSE_SECONDS)
            else:
                records[found[0]] = found[1]
        answer = {**_answer(transport, processes, job, records, deadline), "group": group}
        _wait([transport.send(_packed(answer), process, _ANSWER_TAG) for process in records if process != first])
    else:
        sent = transport.send(_packed(mine), first, _HELLO_TAG)
        until = dataclasses.replace(deadline, ends_at=deadline.ends_at + _LAST_SECONDS)
        while (found := _next(transport, _ANSWER_TAG, group)) is None:
            time.sleep(_PAUSE_SECONDS)
            text = f"{ranks_text(mine['ranks'])} waited {deadline} for MPI process {first}, which creates {job}"
            if first in transport.failed():
                transport.give_up()
                raise WorkerLostError(f"{text}: the process was lost. Start the job again.", reason="was lost")
            if until.is_over():
                transport.give_up()
                raise DeadlineExceededError(f"{text}. {job.start_alike}, or allow more time with timeout_seconds=.")
        _wait([sent])
        answer = found[1]
    if "error" in answer:
        transport.give_up()
        kinds = {kind.__name__: kind for kind in (DeadlineExceededError, FailedPreconditionError, WorkerLostError)}
        raise kinds[answer["kind"]](answer["error"])
    return answer


def _next(transport: Transport, tag: int, group: str) -> tuple[int, dict[str, Any]] | None:
    """Return the source and the content of the next message about a group, if any; keep messages about other groups."""
    with transport.lock:
        if not transport.kept[tag, group] and (found := transport.poll(tag)) is not None:
            record = json.loads(found[1])
            transport.kept[tag, record["group"]].append((found[0], record))
        return transport.kept[tag, group].popleft() if transport.kept[tag, group] else None


def _packed(record: Mapping[str, Any]) -> Any:
    return np.frombuffer(json.dumps(record).encode(), np.uint8)


def _wait(requests: Sequence[Request]) -> None:
    deadline = Deadline.after(_LAST_SECONDS)
    for request in requests:
        try:
            while request.test() is None and not deadline.is_over():
                time.sleep(_PAUSE_SECONDS)
        except PeerFailed:
            continue  # the group's first call reports the lost process


def _answer(
    transport: Transport,
    processes: Sequence[int],
    job: Job,
    records: Mapping[int, dict[str, Any]],
    deadline: Deadline,
) -> dict[str, Any]:
    """Return the descriptions in the order of processes, or the reason why the group cannot be formed."""
    try:
        _check(transport, processes, job, records, deadline)
    except (DeadlineExceededError, FailedPreconditionError, WorkerLostError) as error:
        return {"error": str(error), "kind": type(error).__name__}
    return {
        "processes": [records[process] for process in processes],
        "epoch": secrets.randbits(EPOCH_BITS),
        "tag": new_tag(transport),
    }


def _check(
    transport: Transport,
    processes: Sequence[int],
    job: Job,
    records: Mapping[int, dict[str, Any]],
    deadline: Deadline,
) -> None:
    missing = [process for process in processes if process not in records]
    given = sorted(rank for record in records.values() for rank in record["ranks"])
    if missing:
        lacks = set(range(job.num_ranks)) - set(given)
        names = f"{ranks_text(lacks) if lacks else 'processes'} of {job} (MPI processes {missing})"
        if set(missing) & set(transport.failed()):
            raise WorkerLostError(f"{names} exited before all had connected. Start the job again.")
        raise DeadlineExceededError(
            f"waited {deadline} for {names}. {job.start_alike}, in all of these processes, or allow more time with "
            "timeout_seconds=."
        )
    first = records[processes[0]]
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
        if record["problem"]:
            raise FailedPreconditionError(f"{_name(record)} cannot join the group: {record['problem']}")
        if record["network_dtype"] != first["network_dtype"]:
            raise FailedPreconditionError(
                f"{_name(record)} sends float32 to other hosts as {record['network_dtype']}, but {_name(first)} sends "
                f"float32 to other hosts as {first['network_dtype']}: set RINGLET_NETWORK_DTYPE to the same value in "
                "all processes, or in none."
            )
    if given != list(range(job.num_ranks)):
        raise FailedPreconditionError(
            f"the {len(processes)} MPI processes have the ranks {given}: assign each of the ranks 0 to "
            f"{job.num_ranks - 1} to exactly one process, and at least one rank to each process."
        )
    try:
        hosts_of([(record["ranks"], ProcessIdentity.from_record(record["process"])) for record in records.values()])
    except ValueError as error:
        raise FailedPreconditionError(
            f"{error}: the ranks of a host must be consecutive. Start the job with `mpiexec --map-by slot` (Open "
            "MPI) or `srun --distribution=block`."
        ) from None


def _name(record: Mapping[str, Any]) -> str:
    return f"{ranks_text(record['ranks'])} ({ProcessIdentity.from_record(record['process'])})"
