"""Collectives that move values between all ranks without combining them.

As in ``reduction_collectives.py``, a call first passes an array to the core unchanged, and converts it only if the core
cannot use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.collectives.adapters.adapter_outputs import AdapterOutputs
from ringlet.collectives.adapters.array_adapters import in_kind_of, kind_of
from ringlet.collectives.all_to_all import all_to_all
from ringlet.collectives.argument_parsing import axis_in, equal_counts, pairs_of, root_of, root_only
from ringlet.collectives.buffers import Array, Output, as_buffer, copy_if_overlapping
from ringlet.collectives.member_base import MemberBase
from ringlet.errors import InvalidArgumentError


class DataMovement(MemberBase):
    """Member methods that move values between all ranks."""

    __slots__ = ()

    def all_gather(self, x: Any, *, axis: int = 0, out: Array | None = None) -> Array:
        """Concatenate the arrays of all ranks on every rank.

        Parameters
        ----------
        x : array-like
            This rank's array, of any memory layout. Sizes along `axis` may differ between ranks; sizes along other axes
            must be equal. A 0-d array counts as shape (1,).
        axis : int
            Axis of concatenation, the same on all ranks; negative axes count from the last.
        out : ndarray, optional
            Array for the result; `x` may be the rank's own block of it. Pass `out` on all ranks or on none.

        Returns
        -------
        ndarray
            `out`, or a read-only array, whose memory ranks may share: the arrays in rank order, concatenated along
            `axis`.

        Raises
        ------
        InvalidArgumentError
            If `axis` is out of range, or `out` does not fit.

        Notes
        -----
        One step. For a result of S bytes, the P ranks together read and write S bytes, or P·S with `out`.

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
        """Concatenate the arrays of all ranks on one rank.

        Parameters
        ----------
        x, axis
            As for :meth:`all_gather`.
        root : int
            The rank that receives the result.
        out : ndarray, optional
            Array for the result, passed by the root only.

        Returns
        -------
        ndarray or None
            On the root `out` or a read-only array, as returned by :meth:`all_gather`; None on other ranks.

        Raises
        ------
        InvalidArgumentError
            If `axis` or `root` is out of range, another rank passes `out`, or `out` does not fit.

        Notes
        -----
        One step, in which the bytes of the result are read and written once.

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
        """Split every rank's array into blocks, send block d to rank d, and concatenate the received blocks.

        Parameters
        ----------
        x : array-like
            This rank's array, with the same shape and dtype on all ranks, in any memory layout. With `counts`, sizes
            along `split_axis` may differ.
        split_axis, concat_axis : int
            Axes of splitting and concatenation, the same on all ranks; negative axes count from the last. Axes
            other than 0 cost a copy, and a step in which the ranks compare their axes.
        counts : iterable of int, optional
            Number of rows along `split_axis` for each rank; equal blocks by default. Pass counts on all ranks or on
            none. Counts may differ between ranks only if the axes are equal.
        out : ndarray, optional
            Array for the result of this rank.

        Returns
        -------
        ndarray
            `out`, or a read-only array: the blocks of all ranks, concatenated along `concat_axis`.

        Raises
        ------
        InvalidArgumentError
            If an axis is out of range; if the size of `split_axis` is neither a multiple of the number of ranks nor the
            sum of `counts`; if blocks cannot be concatenated, or `out` does not fit.

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
        """Send arrays from source ranks to target ranks.

        Parameters
        ----------
        x : array-like
            This rank's array, with the same shape and dtype on all ranks, in any memory layout.
        pairs : iterable of (int, int)
            (source, target) ranks, the same on all ranks. Each rank is a source at most once and a target at most once.
        out : ndarray, optional
            Array for the result of this rank.

        Returns
        -------
        ndarray
            `out`, or a read-only array: the array of this rank's source; zeros if this rank is not a target.

        Raises
        ------
        InvalidArgumentError
            If a pair names an unknown rank, a rank is a source twice or a target twice, or `out` does not fit.

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
    buffer = as_buffer(x)
    if buffer.ndim == 0:
        buffer = buffer.reshape(1)
    axis = axis_in(buffer.ndim, axis)
    if out is None:
        return buffer, axis, None
    # The size along the axis depends on all ranks.
    return buffer, axis, Output(out, (*buffer.shape[:axis], None, *buffer.shape[axis + 1 :]), buffer.dtype)


def _all_gather(core: _core.Member, x: Any, axis: Any, out: Array | None) -> Any:
    buffer, axis, output = _joined(x, axis, out)
    if output is not None:
        core.all_gather(copy_if_overlapping(output.direct, buffer), axis, output.direct)
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
    core.gather(copy_if_overlapping(output.direct, buffer), root, axis, output.direct)
    return output.store()


def _permute(core: _core.Member, x: Any, pairs: list[tuple[int, int]], out: Array | None) -> Any:
    buffer = as_buffer(x)
    if out is None:
        return in_kind_of(x, core.collective_permute(buffer, pairs, None), is_own=True)
    output = Output(out, buffer.shape, buffer.dtype)
    core.collective_permute(copy_if_overlapping(output.direct, buffer), pairs, output.direct)
    return output.store()


def _all_gather_to_own(core: _core.Member, x: Any, buffer: Array, axis: int, kind_name: str) -> Any:
    """Gather into memory that only this rank uses; a preceding step exchanges the sizes."""
    # A rank that skips the size exchange would mistake the sizes for arrays; the barrier detects it.
    core.barrier(f"all_gather({kind_name}, axis={axis})")
    sizes = core.all_gather(np.array([buffer.shape[axis]]), 0, None)
    shape = (*buffer.shape[:axis], int(sizes.sum()), *buffer.shape[axis + 1 :])
    outputs = AdapterOutputs([x], [shape], [buffer.dtype])
    core.all_gather(buffer, axis, outputs.direct[0])
    return outputs.store()[0]
