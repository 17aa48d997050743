"""The collectives that move values between all ranks and change none: how a member calls them.

As in ``reductions.py``, a call tries the core with the arguments as they are, and converts them where it must.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.collectives.adapters.adapter_outputs import KindOutputs
from ringlet.collectives.adapters.array_adapters import in_kind_of, kind_of
from ringlet.collectives.all_to_all import all_to_all
from ringlet.collectives.argument_parsing import (
    axis_in,
    equal_counts,
    pairs_of,
    root_of,
    root_only,
)
from ringlet.collectives.buffers import Array, Output, as_buffer, read_first
from ringlet.collectives.member_base import MemberBase
from ringlet.errors import InvalidArgumentError

__all__ = ["Movement"]


class Movement(MemberBase):
    """Calls of a member that move values between all ranks."""

    __slots__ = ()

    def all_gather(self, x: Any, *, axis: int = 0, out: Array | None = None) -> Array:
        """Give every rank the arrays of all ranks, one behind the other.

        Parameters
        ----------
        x : array-like
            This rank's array, of any memory layout. Sizes along `axis` may differ between ranks; all else is equal. An
            array without axes counts as one of shape (1,).
        axis : int
            Along which the arrays are joined, same on all ranks; negative ones count from the last.
        out : ndarray, optional
            Where to put the result; `x` may be its own place in it. All ranks give one or none does.

        Returns
        -------
        ndarray
            `out`, or a read-only array whose memory all ranks share: the arrays in rank order, joined along `axis`.

        Raises
        ------
        InvalidArgumentError
            If there is no such axis, or `out` does not fit.

        Notes
        -----
        One step. For S bytes of result, S bytes are read and written by all ranks together, or P·S with `out`.

        Examples
        --------
        >>> from ringlet.testing import run_on_ranks
        >>> run_on_ranks(3, lambda member: member.all_gather(np.full(member.rank, member.rank)))[0]
        array([1, 2, 2])
        """
        if type(x) is np.ndarray and type(axis) is int and 0 <= axis < x.ndim:
            try:
                return self._core.all_gather(x, axis, out)
            except _core.Unusable:
                pass
        result: Array = _all_gather(self._core, x, axis, out)
        return result

    def gather(self, x: Any, root: int = 0, *, axis: int = 0, out: Array | None = None) -> Array | None:
        """Give one rank the arrays of all ranks, one behind the other.

        Parameters
        ----------
        x, axis
            As for :meth:`all_gather`.
        root : int
            The rank that receives.
        out : ndarray, optional
            Where to put the result, given by the root alone.

        Returns
        -------
        ndarray or None
            On the root `out` or a read-only array, as :meth:`all_gather` gives; None on other ranks.

        Raises
        ------
        InvalidArgumentError
            If there is no such axis or rank, another rank gives `out`, or it does not fit.

        Notes
        -----
        One step. For S bytes of result, S bytes are read and written.

        Examples
        --------
        >>> from ringlet.testing import run_on_ranks
        >>> run_on_ranks(2, lambda member: member.gather([[member.rank], [5]], axis=1))
        [array([[0, 1],
               [5, 5]]), None]
        """
        root = root_of(root, self.num_ranks)
        if out is not None and root != self.rank:
            root_only("out", self.rank, root)
        if type(x) is np.ndarray and type(axis) is int and 0 <= axis < x.ndim:
            try:
                return self._core.gather(x, root, axis, out)
            except _core.Unusable:
                pass
        result: Array | None = _gather(self._core, x, root, axis, out)
        return result

    def all_to_all(
        self,
        x: Any,
        *,
        split_axis: int = 0,
        concat_axis: int = 0,
        counts: Iterable[int] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Cut every rank's array into blocks and give each rank its block of each array, joined in rank order.

        Parameters
        ----------
        x : array-like
            This rank's array, of any memory layout. Block d goes to rank d. Of one shape and dtype on all ranks; with
            `counts`, sizes along `split_axis` may differ.
        split_axis, concat_axis : int
            Along which arrays are cut and joined, same on all ranks; negative ones count from the last. Axis 0 for both
            needs no copy; others cost one, and a step in which the ranks compare their axes.
        counts : iterable of int, optional
            How many rows along `split_axis` go to each rank; equal blocks without it. All ranks give some or none does.
            They may differ between ranks if the axes are equal.
        out : ndarray, optional
            Where this rank wants its result.

        Returns
        -------
        ndarray
            `out`, or a read-only array: what came from all ranks, joined along `concat_axis`.

        Raises
        ------
        InvalidArgumentError
            If there is no such axis; if `split_axis` is no multiple of the number of ranks, or not the sum of `counts`;
            if blocks cannot be joined, or `out` does not fit.

        Notes
        -----
        One step, in which each byte is read and written once.

        Examples
        --------
        >>> from ringlet.testing import run_on_ranks
        >>> run_on_ranks(2, lambda member: member.all_to_all([10 * member.rank, 10 * member.rank + 1]))
        [array([ 0, 10]), array([ 1, 11])]
        """
        is_first = type(split_axis) is int and type(concat_axis) is int and split_axis == concat_axis == 0
        if counts is None and is_first and type(x) is np.ndarray and x.ndim:
            try:
                return self._core.all_to_all(x, None, out)
            except _core.Unusable:
                pass
            except InvalidArgumentError:
                equal_counts(x.shape, 0, self.num_ranks, "split_axis")
                raise
        result: Array = all_to_all(self._core, x, (split_axis, concat_axis), counts, out)
        return result

    def collective_permute(self, x: Any, pairs: Iterable[tuple[int, int]], *, out: Array | None = None) -> Array:
        """Send arrays from rank to rank.

        Parameters
        ----------
        x : array-like
            This rank's array, of one shape and dtype on all ranks, of any memory layout.
        pairs : iterable of (int, int)
            Who sends to whom, as (source, target): the same on all ranks. No rank is source twice, nor target twice.
        out : ndarray, optional
            Where this rank wants what comes.

        Returns
        -------
        ndarray
            `out`, or a read-only array: that of the rank whose target this rank is; zeros if it is nobody's.

        Raises
        ------
        InvalidArgumentError
            If a pair names no rank, or one twice, or `out` does not fit.

        Notes
        -----
        One step, in which each byte that is sent is read and written once.

        Examples
        --------
        >>> from ringlet.testing import run_on_ranks
        >>> run_on_ranks(3, lambda member: member.collective_permute(10 + member.rank, [(0, 1), (1, 2)]).item())
        [0, 10, 11]
        """
        pairs = pairs_of(pairs, self.num_ranks)
        try:
            return self._core.collective_permute(x, pairs, out)
        except _core.Unusable:
            pass
        result: Array = _permute(self._core, x, pairs, out)
        return result


def _joined(x: Any, axis: Any, out: Array | None) -> tuple[Array, int, Output | None]:
    """What a gathering call is given: the array, at least one-dimensional, its axis, and where the result goes."""
    buffer = as_buffer(x)
    if buffer.ndim == 0:
        buffer = buffer.reshape(1)
    axis = axis_in(buffer.ndim, axis)
    if out is None:
        return buffer, axis, None
    # How long the result is along the axis, only the ranks know together.
    return buffer, axis, Output(out, (*buffer.shape[:axis], None, *buffer.shape[axis + 1 :]), buffer.dtype)


def _all_gather(core: _core.Member, x: Any, axis: Any, out: Array | None) -> Any:
    buffer, axis, output = _joined(x, axis, out)
    if output is not None:
        core.all_gather(read_first(output.direct, buffer), axis, output.direct)
        return output.store()
    kind = kind_of(x)
    if kind is not None and kind.is_mutable:
        return _all_gather_to_own(core, x, buffer, axis, kind.name)
    return in_kind_of(x, core.all_gather(buffer, axis, None))


def _gather(core: _core.Member, x: Any, root: int, axis: Any, out: Array | None) -> Any:
    buffer, axis, output = _joined(x, axis, out)
    if output is None:
        result = core.gather(buffer, root, axis, None)
        return None if result is None else in_kind_of(x, result, is_own=True)
    core.gather(read_first(output.direct, buffer), root, axis, output.direct)
    return output.store()


def _permute(core: _core.Member, x: Any, pairs: list[tuple[int, int]], out: Array | None) -> Any:
    buffer = as_buffer(x)
    if out is None:
        return in_kind_of(x, core.collective_permute(buffer, pairs, None), is_own=True)
    output = Output(out, buffer.shape, buffer.dtype)
    core.collective_permute(read_first(output.direct, buffer), pairs, output.direct)
    return output.store()


def _all_gather_to_own(core: _core.Member, x: Any, buffer: Array, axis: int, kind_name: str) -> Any:
    """Gather into memory of this rank's own, whose size the ranks first tell each other in a step of its own."""
    # Or their numbers would pass for the array of a rank that has no such step.
    core.barrier(f"all_gather({kind_name}, axis={axis})")
    sizes = core.all_gather(np.array([buffer.shape[axis]]), 0, None)
    shape = (*buffer.shape[:axis], int(sizes.sum()), *buffer.shape[axis + 1 :])
    outputs = KindOutputs([x], [shape], [buffer.dtype])
    core.all_gather(buffer, axis, outputs.direct[0])
    return outputs.store()[0]
