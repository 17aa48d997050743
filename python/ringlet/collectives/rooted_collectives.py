"""Collectives that send data from a root to all ranks.

As in ``reduction_collectives.py``, a call first passes an array to the core unchanged, and converts it only if the core
cannot use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.collectives.adapters.array_adapters import in_kind_of, in_kinds_of
from ringlet.collectives.argument_parsing import (
    as_sequence,
    axis_in,
    axis_number,
    counts_of,
    equal_counts,
    pass_ends,
    root_of,
    root_only,
)
from ringlet.collectives.buffers import Array, Output, Outputs, as_buffer, as_buffers, copy_if_overlapping
from ringlet.collectives.member_base import MemberBase
from ringlet.errors import InvalidArgumentError


class RootedCollectives(MemberBase):
    """Member methods that send data from a root to all ranks."""

    __slots__ = ()

    def scatter(
        self,
        x: Any = None,
        root: int = 0,
        *,
        axis: int = 0,
        counts: Iterable[int] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Split the array of one rank into blocks and send each rank its block.

        Parameters
        ----------
        x : array-like, optional
            The array to split, of any memory layout, passed by the root only.
        root : int
            The rank that sends.
        axis : int
            Axis of the split, the same number on all ranks; negative axes count from the last. An axis other than 0
            costs a copy and a step in which the ranks compare axes.
        counts : iterable of int, optional
            Number of rows along `axis` for each rank, passed by the root only; equal blocks by default.
        out : ndarray, optional
            Array for the block. Pass `out` on all ranks or on none.

        Returns
        -------
        ndarray
            `out`, or a read-only array: block `rank` of `x`.

        Raises
        ------
        InvalidArgumentError
            If the root passes no `x`, or another rank `x` or `counts`; if `root` or `axis` is out of range; if the size
            of the axis is neither a multiple of the number of ranks nor the sum of `counts`; if `out` does not fit.

        Notes
        -----
        One step, in which all ranks together read and write the bytes of `x` once.

        Examples
        --------
        >>> from ringlet.testing import run_on_ranks
        >>> def step(member):
        ...     return member.scatter(np.arange(5), counts=[3, 2]) if member.rank == 0 else member.scatter()
        >>> run_on_ranks(2, step)
        [array([0, 1, 2]), array([3, 4])]
        """
        root = root_of(root, self.num_ranks)
        if root != self.rank:
            for name, value in (("x", x), ("counts", counts)):
                if value is not None:
                    root_only(name, self.rank, root)
            received: Array = _receive_block(self._core, root, axis, out)
            return received
        if x is None:
            raise InvalidArgumentError(f"the root of a scatter, here rank {root}, must pass x, the array to split.")
        if counts is None and out is None and type(axis) is int and axis == 0 and type(x) is np.ndarray and x.ndim:
            try:
                return self._core.scatter(x, root, None, None)
            except _core.Unusable:
                pass
            except InvalidArgumentError:
                equal_counts(x.shape, 0, self.num_ranks)
                raise
        block: Array = _send_blocks(self._core, x, axis, counts, out)
        return block

    def broadcast(self, x: Any = None, root: int = 0, *, out: Array | None = None) -> Array:
        """Send the array of one rank to all ranks.

        Parameters
        ----------
        x : array-like, optional
            The array to send. Ranks other than the root may omit it; if passed, it must have the root's shape and
            dtype.
        root : int
            The rank that sends.
        out : ndarray, optional
            Array for the result. Pass `out` on all ranks or on none. On the root, `out` is also the default of `x`.

        Returns
        -------
        ndarray
            `out`, or a read-only array, whose memory ranks may share.

        Raises
        ------
        InvalidArgumentError
            If `root` is out of range, the root passes no array, or `out` does not fit.

        Notes
        -----
        One step. For S bytes and P ranks, all ranks together read and write S bytes, or P·S with `out`.

        Examples
        --------
        >>> from ringlet.testing import run_on_ranks
        >>> run_on_ranks(2, lambda member: member.broadcast([1, 2] if member.rank == 1 else None, root=1))[0]
        array([1, 2])
        """
        root = root_of(root, self.num_ranks)
        if x is None and out is None:
            return self._core.broadcast(None, root, None)[0]
        arrays: tuple[Any] = (out if x is None else x,)
        outs = None if out is None else (out,)
        try:
            return self._core.broadcast(arrays, root, outs)[0]
        except _core.Unusable:
            return _broadcast(self._core, arrays, root, outs)[0]

    def broadcast_many(
        self,
        arrays: Sequence[Any] | None = None,
        root: int = 0,
        *,
        outs: Sequence[Array] | None = None,
        bytes_per_pack: int = 0,
    ) -> list[Array]:
        """Send many arrays of one rank to all ranks in few passes, with the same results as :meth:`broadcast`.

        Parameters
        ----------
        arrays : sequence of array-like, optional
            The arrays to send, of any dtypes. Ranks other than the root may omit them.
        root : int
            The rank that sends.
        outs : sequence of ndarray, optional
            An output for each array.
        bytes_per_pack : int
            Consecutive arrays are packed into passes of at most this many bytes; a larger array forms its own pass.
            0 means a single pass; otherwise the root first broadcasts the number of arrays in each pass. The same on
            all ranks.

        Returns
        -------
        list of ndarray
            In the order of the root's `arrays`.

        Raises
        ------
        InvalidArgumentError
            If `root` is out of range, the root passes no arrays, or `outs` do not fit.

        Examples
        --------
        >>> from ringlet.testing import run_on_ranks
        >>> run_on_ranks(2, lambda member: member.broadcast_many(None if member.rank else [[1, 2], 3.0]))[1]
        [array([1, 2]), array(3.)]
        """
        root = root_of(root, self.num_ranks)
        if outs is not None:
            outs = as_sequence(outs, "outs")
        arrays = outs if arrays is None else as_sequence(arrays, "arrays")
        if bytes_per_pack == 0:
            try:
                return self._core.broadcast(arrays, root, outs)
            except _core.Unusable:
                return _broadcast(self._core, arrays, root, outs)
        return _broadcast_in_passes(self._core, arrays, root, outs, bytes_per_pack)


# The ndim is unknown on receiving ranks, so the ranks compare the axis as passed, before normalization.
def _compare_axes(core: _core.Member, axis: int) -> None:
    if axis:
        core.barrier(f"scatter(axis={axis})")


def _send_blocks(core: _core.Member, x: Any, axis: int, counts: Iterable[int] | None, out: Array | None) -> Any:
    buffer = as_buffer(x)
    number = axis_in(buffer.ndim, axis)
    if counts is None:
        size = equal_counts(buffer.shape, number, core.num_ranks)
        sizes = None
    else:
        sizes = counts_of(counts, buffer.shape, number, core.num_ranks)
        size = sizes[core.rank]
    shape = (*buffer.shape[:number], size, *buffer.shape[number + 1 :])
    output = None if out is None else Output(out, shape, buffer.dtype, axis=number)
    _compare_axes(core, axis)
    front = np.ascontiguousarray(np.moveaxis(buffer, number, 0))
    if output is None:
        return in_kind_of(x, np.moveaxis(core.scatter(front, core.rank, sizes, None), 0, number), is_own=True)
    core.scatter(copy_if_overlapping(output.direct, front), core.rank, sizes, output.direct)
    return output.store()


def _receive_block(core: _core.Member, root: int, axis: Any, out: Array | None) -> Any:
    axis = axis_number(axis)
    if out is None:
        _compare_axes(core, axis)
        block = core.scatter(None, root, None, None)
        return np.moveaxis(block, 0, axis) if axis else block
    output = Output(out, axis=axis)
    axis_in(out.ndim, axis)  # blocks have as many dimensions as the root's array
    _compare_axes(core, axis)
    core.scatter(None, root, None, output.direct)
    return output.store()


def _broadcast(core: _core.Member, arrays: Sequence[Any] | None, root: int, outs: Sequence[Any] | None) -> list[Array]:
    buffers = None if arrays is None else as_buffers(arrays)
    if outs is None or buffers is None:
        return in_kinds_of(arrays, core.broadcast(buffers, root, None))
    outputs = Outputs(outs, buffers)
    core.broadcast(buffers, root, outputs.direct)
    return outputs.store()


def _broadcast_in_passes(
    core: _core.Member, arrays: Sequence[Any] | None, root: int, outs: Sequence[Any] | None, bytes_per_pack: Any
) -> list[Array]:
    buffers = None if arrays is None else as_buffers(arrays)
    if buffers is None and core.rank == root:
        raise InvalidArgumentError("the root of a broadcast must pass the arrays to send.")
    outputs = None if outs is None or buffers is None else Outputs(outs, buffers)
    ends = pass_ends([buffer.nbytes for buffer in buffers or ()], bytes_per_pack)
    core.barrier(f"broadcast_many(bytes_per_pack={bytes_per_pack})")
    # The last pass includes all remaining arrays, so that it detects a receiver with more arrays than the root.
    ends = core.broadcast([np.array(ends)] if core.rank == root else None, root, None)[0].tolist()
    results: list[Array] = []
    for begin, end in zip([0, *ends], [*ends[:-1], None], strict=False):
        part = None if buffers is None else buffers[begin:end]
        results += core.broadcast(part, root, None if outputs is None else outputs.direct[begin:end])
    return in_kinds_of(arrays, results) if outputs is None else outputs.store()
