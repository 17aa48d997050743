"""One rank of a group over several hosts, with the interface of the core's members."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ringlet import _core
from ringlet.collectives.hosts.host_calls import Array, check_plain, checked_outputs, text_of
from ringlet.collectives.hosts.host_movement import HostMovement
from ringlet.collectives.hosts.host_reductions import HostReductions, partial_dtype
from ringlet.collectives.op import Op


class HostMember(HostReductions, HostMovement):
    """One rank of a group over several hosts."""

    def exclusive_scan(self, array: Array, op: int, out: Array | None) -> Array:
        """Combine the arrays of the ranks before this one, from left to right."""
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

    def split(self, color: int | None, key: int, label: int) -> NoReturn:
        """Raise an error: groups over several hosts cannot be split."""
        raise _unsupported("split")

    def rejoin(self) -> NoReturn:
        """Raise an error: a rank of a group over several hosts cannot rejoin it."""
        raise _unsupported("rejoin")


def _unsupported(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name} is not available for a group over several hosts: start all ranks on one host, or use all_gather."
    )
