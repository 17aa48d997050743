"""One rank of a group over several hosts, which a :class:`Member` uses in place of a core member."""

from __future__ import annotations

import contextlib
import multiprocessing.util
import secrets
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ringlet import _core
from ringlet.collectives.hosts.host_calls import Array, check_plain, checked_outputs, text_of
from ringlet.collectives.hosts.host_group import HostGroup, hosts_of
from ringlet.collectives.hosts.host_link import NUM_KINDS, HostLink
from ringlet.collectives.hosts.host_movement import HostMovement
from ringlet.collectives.hosts.host_reductions import HostReductions, partial_dtype
from ringlet.collectives.hosts.mpi_transport import Transport
from ringlet.collectives.op import Op
from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.errors.exception_notes import class_and_text

EPOCH_BITS = 56


class HostMember(HostReductions, HostMovement):
    """One rank of a group over several hosts."""

    def exclusive_scan(self, array: Array, op: int, out: Array | None) -> Array:
        """Combine the arrays of the ranks before this rank, from left to right."""
        operation = Op(op)
        check_plain(array, operation)
        place, result = checked_outputs([array], None if out is None else [out], operation)[0]
        text = f"exclusive_scan({operation.name}, {text_of(array)})"
        row = array.reshape(1, *array.shape)
        rows = self._call(text, lambda text: self._gather_blocks(text, row, None, 0), ends_together=True)
        if self.rank == 0:  # rank 0 gets the identity element
            _core.Group(1, 1.0, 0).member(0).exclusive_scan(array, op, place)
            return result
        total = rows[0].astype(partial_dtype(array.dtype))
        for other in rows[1 : self.rank]:
            _core.reduce_buffers([total, other.astype(total.dtype, copy=False)], op, total)
        with np.errstate(all="ignore"):
            place[...] = total
        return result

    def split(self, color: int | None, key: int, label: int) -> tuple[Any, list[int], list[int]] | None:
        """Return a member of the new group, its members' ranks in this group and their `label`s; None without color."""
        group, transport = self.group, self._link.transport
        mine = [color is not None, color or 0, key, label, secrets.randbits(EPOCH_BITS), new_tag(transport)]
        row = np.array([mine], np.int64)
        rows = self._call("split()", lambda text: self._gather_blocks(text, row, None, 0), ends_together=True)
        part = self._local.split(color, key, label)
        if part is None:
            return None
        chosen = [rank for rank in range(self.num_ranks) if rows[rank, 0] and rows[rank, 1] == color]
        chosen.sort(key=lambda rank: (rows[rank, 2], rank))
        labels = rows[chosen, 3].tolist()
        identities = [group.identities[rank] for rank in chosen]
        try:
            hosts = hosts_of([([number], identity) for number, identity in enumerate(identities)])
        except ValueError as error:
            raise InvalidArgumentError(
                f"the new group would have the ranks {chosen}, in this order; in the new numbering, {error}, but the "
                "ranks of a host must be consecutive. Pass keys that keep the ranks of each host together, or no keys."
            ) from None
        if len(hosts) == 1:
            return part[0], chosen, labels
        host = next(number for number, each in enumerate(hosts) if each.begin <= chosen.index(self.rank) < each.end)
        processes = [group.processes[rank] for rank in chosen]
        epoch, tag = rows[chosen[0], 4:].tolist()
        new = HostGroup(part[0].group, hosts, host, identities, processes, epoch=epoch, whole=group)
        notices = self._link.read_own_notices
        link = linked(transport, new, tag, self._link.seconds, notices, is_leader=part[0].rank == 0)
        core = type(self)(part[0], new, link)
        weakref.finalize(core, link.leave, "freed its member").atexit = False
        leave_at_exit([core])
        return core, chosen, labels

    def stop_messages(self) -> None:
        """Close the inboxes of this process and stop its message hub, before MPI ends."""
        if (hub := self._link.transport.hub) is not None:
            hub.stop()

    def rejoin(self) -> NoReturn:
        """Raise an error: a rank of a group over several hosts cannot rejoin it."""
        raise NotImplementedError(
            "rejoin is not available for a group over several hosts: create another group, or start all ranks on one "
            "host."
        )


def linked(
    transport: Transport,
    group: HostGroup,
    tag: int,
    seconds: float,
    check: Callable[[], None] = lambda: None,
    *,
    is_leader: bool = True,
) -> HostLink:
    """Return the link of a process to the other hosts of a group; `check` is called during waits."""

    def check_all() -> None:
        check()
        group.check()

    link = HostLink(
        transport,
        [group.processes[each.begin] for each in group.hosts],
        group.host,
        epoch=group.epoch,
        tag=tag,
        seconds=seconds,
        check=check_all,
        lost=group.lost,
        on_notice=group.read_notice,
        names=[str(each) for each in group.hosts],
        is_leader=is_leader,
    )
    group.report = link.report_failure
    return link


def new_tag(transport: Transport) -> int:
    """Return a tag for a group whose first process is this process; each process has its own range of tags."""
    with transport.lock:
        transport.num_groups += 1
        most = max((transport.largest_tag // NUM_KINDS - 1) // transport.size, 1)
        return 1 + transport.rank * most + transport.num_groups % most


_live: weakref.WeakSet[HostMember] = weakref.WeakSet()


def leave_at_exit(cores: Sequence[HostMember]) -> None:
    """Make members leave the group when this process exits, so that other ranks do not wait for them."""
    if not _live:
        multiprocessing.util.Finalize(None, _leave_all, exitpriority=-1)
    _live.update(cores)


def _leave_all() -> None:
    error = getattr(sys, "last_value", None)
    reason = "ended without closing its group" if error is None else f"raised {class_and_text(error)}"
    for core in list(_live):
        with contextlib.suppress(FailedPreconditionError):  # the member is already closed
            core.depart(reason)
        core.stop_messages()
