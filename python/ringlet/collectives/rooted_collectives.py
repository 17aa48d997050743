"""The collectives by which one rank gives to all: how a member calls them.

As in ``reductions.py``, a call tries the core with the arguments as they are, and converts them where it must.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.collectives.adapters.array_adapters import in_kind_of
from ringlet.collectives.argument_parsing import (
    as_sequence,
    axis_in,
    counts_of,
    equal_counts,
    pass_ends,
    root_of,
    root_only,
    whole_number,
)
from ringlet.collectives.buffers import Array, Output, Outputs, as_buffer, as_buffers, read_first
from ringlet.collectives.member_base import MemberBase
from ringlet.errors import InvalidArgumentError

__all__ = ["FromRoot"]


class FromRoot(MemberBase):
    """Calls of a member by which one rank gives to all."""

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
        """Cut the array of one rank into blocks and give each rank its own.

        Parameters
        ----------
        x : array-like, optional
            The array to cut, of any memory layout, given by the root alone.
        root : int
            The rank that sends.
        axis : int
            Along which it is cut, the same number on all ranks; negative ones count from the last. Axis 0 needs no
            copy; others cost one, and a step in which the ranks compare their axes.
        counts : iterable of int, optional
            How many rows along `axis` each rank gets, given by the root alone; equal blocks without it.
        out : ndarray, optional
            Where to put the block. All ranks give one or none does.

        Returns
        -------
        ndarray
            `out`, or a read-only array: block `rank` of `x`.

        Raises
        ------
        InvalidArgumentError
            If the root gives no `x`, or another rank one; if there is no such rank or axis; if the axis is no multiple
            of the number of ranks, or not the sum of `counts`; if `out` does not fit.

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
            raise InvalidArgumentError(f"the root of a scatter, rank {root} here, must give the array to cut as x.")
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
        """Give every rank the array of one of them.

        Parameters
        ----------
        x : array-like, optional
            The array to send. Ranks other than the root may leave it out; if they give one, it must have the root's
            shape and dtype.
        root : int
            The rank that sends.
        out : ndarray, optional
            Where to put the array. All ranks give one or none does. The root's stands for `x` where that is left out.

        Returns
        -------
        ndarray
            `out`, or a read-only array whose memory all ranks share.

        Raises
        ------
        InvalidArgumentError
            If there is no rank `root`, the root sends nothing, or `out` does not fit.

        Notes
        -----
        One step, in which S bytes are read and written by all ranks together, or P·S with `out`.

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
        """Give every rank many arrays of one of them: as :meth:`broadcast` of each, in one pass or few.

        Parameters
        ----------
        arrays : sequence of array-like, optional
            The arrays to send, of any mixture of dtypes. Ranks other than the root may leave them out.
        root : int
            The rank that sends.
        outs : sequence of ndarray, optional
            One for each array.
        bytes_per_pack : int
            Consecutive arrays are packed into passes of at most so many bytes; a larger array has a pass of its own.
            0 means one pass of all; otherwise the root first tells the others how many arrays each pass has. Same on
            all ranks.

        Returns
        -------
        list of ndarray
            In the order of the root's `arrays`.

        Raises
        ------
        InvalidArgumentError
            If there is no rank `root`, the root sends nothing, or `outs` do not fit.

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


# Ranks that receive do not know how many axes the array has. So that all of them compare the axis in the same call, it
# counts as the caller wrote it.
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
    core.scatter(read_first(output.direct, front), core.rank, sizes, output.direct)
    return output.store()


def _receive_block(core: _core.Member, root: int, axis: Any, out: Array | None) -> Any:
    axis = whole_number(axis, "axis", "the number of an axis")
    if out is None:
        _compare_axes(core, axis)
        block = core.scatter(None, root, None, None)
        return np.moveaxis(block, 0, axis) if axis else block
    output = Output(out, axis=axis)
    axis_in(out.ndim, axis)  # a piece has at least the axis that it was cut along
    _compare_axes(core, axis)
    core.scatter(None, root, None, output.direct)
    return output.store()


def _broadcast(core: _core.Member, arrays: Sequence[Any] | None, root: int, outs: Sequence[Any] | None) -> list[Array]:
    buffers = None if arrays is None else as_buffers(arrays)
    if outs is None or buffers is None:
        return _in_kinds_of(arrays, core.broadcast(buffers, root, None))
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
    # Arrays that only the others have, the last pass shows.
    ends = core.broadcast([np.array(ends)] if core.rank == root else None, root, None)[0].tolist()
    results: list[Array] = []
    for begin, end in zip([0, *ends], [*ends[:-1], None], strict=False):
        part = None if buffers is None else buffers[begin:end]
        results += core.broadcast(part, root, None if outputs is None else outputs.direct[begin:end])
    return _in_kinds_of(arrays, results) if outputs is None else outputs.store()


def _in_kinds_of(arrays: Sequence[Any] | None, results: list[Array]) -> list[Any]:
    """Results as arrays of the libraries of what this rank gave; a rank that gave nothing gets NumPy's."""
    if arrays is None:
        return results
    return [in_kind_of(array, result) for array, result in zip(arrays, results, strict=True)]
