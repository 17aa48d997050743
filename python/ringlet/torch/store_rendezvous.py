"""Rendezvous of a torch group's ranks through the store of ``torch.distributed``."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import MutableMapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from torch.distributed import DistBackendError, DistNetworkError

from ringlet.cluster.environment import Placement, hosts_placement
from ringlet.collectives import Member, init_process_group
from ringlet.collectives.process_group import join_processes
from ringlet.errors import InvalidArgumentError
from ringlet.rendezvous.host_check import different_places, own_record
from ringlet.rendezvous.job_key import Job, ranks_text
from ringlet.rendezvous.process_identity import ProcessIdentity

__all__ = ["Ranks", "exchange", "join"]


class Ranks(NamedTuple):
    """The processes of a group, by rank, and a random secret of rank 0.

    Over several hosts, `place` is the placement of this process, and `processes` are the MPI ranks of all processes;
    on one host, both are None.
    """

    identities: list[ProcessIdentity]
    key: str
    place: Placement | None
    processes: list[int] | None


def set_torch_variables(environ: MutableMapping[str, str]) -> None:
    """Set torch's variables, such as WORLD_SIZE, in a process of an MPI job on several hosts, unless RANK is set.

    ``env://`` also requires MASTER_ADDR and MASTER_PORT, which `ringlet run --hosts` sets.
    """
    place = hosts_placement(environ)
    if place is not None and "RANK" not in environ:
        numbers = (place.rank, place.size, place.local_rank, place.local_size)
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        environ.update({name: str(number) for name, number in zip(names, numbers, strict=True)})


def join(ranks: Ranks, rank: int, timeout: timedelta) -> Member:
    """Join the Ringlet group, and wait until all ranks have joined; `ranks` is the result of :func:`exchange`."""
    seconds, size = timeout.total_seconds(), len(ranks.identities)
    if size == 1:
        return init_process_group(0, 1, timeout_seconds=seconds)
    return join_processes(Job("torch.distributed", ranks.key, size), [rank], seconds, ranks.place, ranks.processes)[0]


def exchange(store: Any, rank: int, size: int, timeout: timedelta, global_ranks: Sequence[int] = ()) -> Ranks:
    """Exchange the identities of all processes through the store, and check that they can form a group.

    `global_ranks` are the ranks passed to ``new_group``, which torch does not compare between the processes.
    """
    try:
        return _exchange(store, rank, size, timeout, global_ranks)
    except DistNetworkError as error:
        raise DistBackendError(
            "the store has ended with its process, usually rank 0, before all ranks joined: call dist.barrier() before "
            "dist.destroy_process_group()."
        ) from error


def _exchange(store: Any, rank: int, size: int, timeout: timedelta, global_ranks: Sequence[int]) -> Ranks:
    if not 0 <= rank < size:  # torch does not check RANK and WORLD_SIZE
        raise InvalidArgumentError(
            f"rank {rank} is not in a group of {size}: number the ranks from 0 to {size - 1}, or raise world_size"
        )
    mine = ProcessIdentity.of_this_process()
    attempt = store.add(f"ringlet/{rank}", 1)  # the store may outlive a group, as the store of torchrun does
    place = hosts_placement(os.environ)
    record = own_record() | {"key": secrets.token_hex(16) if rank == 0 else "", "mpi": place and place.rank}
    record |= {"ranks": [*global_ranks], "rank": [*global_ranks, *range(size)][rank]}
    if attempt > 1:
        _check_alone(json.loads(store.get(f"ringlet/{attempt - 1}/{rank}")), mine, record)
    store.set(f"ringlet/{attempt}/{rank}", json.dumps(record))
    keys = [f"ringlet/{attempt}/{number}" for number in range(size)]
    try:
        store.wait(keys, timeout)
    except DistNetworkError:
        raise
    except RuntimeError as error:
        missing = [number for number, key in enumerate(keys) if not store.check([key])]
        raise DistBackendError(
            f"{ranks_text(missing)} of {size} did not join the group within {timeout.total_seconds():g} s: start each "
            "rank once, all with the ringlet backend and the same world_size, or allow more time with timeout=."
        ) from error
    records = [json.loads(store.get(key)) for key in keys]
    for each in records:
        _check_same(each, record)
    processes: list[int] | None = [each.get("mpi") for each in records]
    if not (places := different_places(records)):
        place = processes = None
    elif len({each.get("mpi") for each in records} - {None}) < size:
        raise DistBackendError(
            "the ringlet backend connects processes that belong to one MPI job, or to one user on one host in the same "
            f"network and PID namespaces: {places}. Start them with `ringlet run --hosts a:4,b:4 script.py`, or use "
            'the gloo backend: torch.distributed.init_process_group("gloo").'
        )
    identities = [ProcessIdentity.from_record(each["process"]) for each in records]
    return Ranks(identities, records[0]["key"], place, processes)


def _check_same(other: dict[str, Any], mine: dict[str, Any]) -> None:
    if other["ranks"] != mine["ranks"]:
        calls = [f"rank {each['rank']} called new_group({each['ranks']})" for each in (other, mine)]
        raise DistBackendError(
            f"the ranks created different groups: {', '.join(calls)}. Call new_group with the same ranks in the same "
            "order on every rank."
        )


def _check_alone(record: dict[str, Any], mine: ProcessIdentity, own: dict[str, Any]) -> None:
    other = ProcessIdentity.from_record(record["process"])
    is_here = (other.boot_id, other.pid_namespace) == (mine.boot_id, mine.pid_namespace)
    if is_here and not other.is_same_process(mine) and not other.has_ended():
        _check_same(record, own)
        raise DistBackendError(
            f"rank {own['rank']} has joined already, as {other}; this is {mine}: start each rank once, each with its "
            "own RANK."
        )
