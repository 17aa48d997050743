"""Collectives that combine values.

A call first passes the arguments to the core unchanged, so that the common case has no overhead. If the core cannot use
them (`_core.Unusable`), they are converted and the call is repeated; the first attempt has no effect on other ranks.
The fast path reads enumerations by `_value_`, which costs a tenth of `value`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.collectives.adapters.adapter_outputs import AdapterOutputs, outputs_for
from ringlet.collectives.adapters.array_adapters import in_kind_of, in_kinds_of
from ringlet.collectives.argument_parsing import (
    as_sequence,
    axis_in,
    equal_counts,
    pass_ends,
    refuse_selection,
    root_of,
    root_only,
)
from ringlet.collectives.buffers import Array, Output, Outputs, as_buffer, as_buffers, copy_if_overlapping
from ringlet.collectives.collective_dtypes import as_result, check_pair, check_pairs
from ringlet.collectives.member_base import MemberBase
from ringlet.collectives.op import Algorithm, Op
from ringlet.collectives.persistent_all_reduce import make_plan
from ringlet.errors import InvalidArgumentError


class Reductions(MemberBase):
    """Member methods that combine values."""

    __slots__ = ()

    def all_reduce(
        self, x: Any, op: Op = Op.SUM, *, algorithm: Algorithm = Algorithm.AUTO, out: Array | None = None
    ) -> Array:
        """Combine the arrays of all ranks and return the result on every rank.

        Parameters
        ----------
        x : array-like
            This rank's array, with the same shape and dtype on all ranks, in any memory layout.
        op : Op
            See :class:`Op` for the supported dtypes.
        algorithm : Algorithm
            The same on all ranks.
        out : ndarray, optional
            Array for the result, of the shape of `x`; may be `x` itself. Pass `out` on all ranks or on none.

        Returns
        -------
        ndarray
            `out`, or a read-only array. Ranks may share the memory of a read-only result; it is reused after the last
            view is freed.

        Raises
        ------
        InvalidArgumentError
            If the operation does not support the dtype, or `out` does not fit.

        Notes
        -----
        Elements are combined in the order ((0+1)+(2+3))+((4+5)+...) for every size, so results repeat bit for bit; RING
        uses the order of the ring. A group over several hosts uses the tree order within each host, then over hosts.
        For S bytes on each of P ranks, all ranks together read P·S bytes and write S, or P·S with `out`.

        Examples
        --------
        >>> from ringlet.testing import run_on_ranks
        >>> run_on_ranks(2, lambda member: member.all_reduce([member.rank, 5], Op.MAX))[0]
        array([1, 5])
        """
        if type(op) is not Op or type(algorithm) is not Algorithm:
            refuse_selection(op, algorithm)
        try:
            return self._core.all_reduce((x,), op._value_, algorithm._value_, None if out is None else (out,))[0]
        except _core.Unusable:  # the arguments are converted below
            pass
        except InvalidArgumentError:
            check_pairs((x,), op)
            raise
        return _all_reduce(self._core, [x], op, algorithm, None if out is None else [out])[0]

    def all_reduce_many(
        self,
        arrays: Sequence[Any],
        op: Op = Op.SUM,
        *,
        algorithm: Algorithm = Algorithm.AUTO,
        outs: Sequence[Array] | None = None,
        bytes_per_pack: int = 0,
    ) -> list[Array]:
        """Combine many arrays of any dtypes in few passes, with the same results as :meth:`all_reduce`.

        Parameters
        ----------
        arrays : sequence of array-like
            The same number, in the same order, on all ranks.
        op, algorithm
            As for :meth:`all_reduce`.
        outs : sequence of ndarray, optional
            An output for each array.
        bytes_per_pack : int
            Consecutive arrays are packed into passes of at most this many bytes; a larger array forms its own pass.
            0 means a single pass; otherwise the ranks first compare their passes in a separate step. The same on all
            ranks. The bits of the results do not depend on the passes.

        Returns
        -------
        list of ndarray
            In the order of `arrays`.

        Raises
        ------
        InvalidArgumentError
            If the operation does not support a dtype, `outs` do not fit, or `bytes_per_pack` is negative.

        Examples
        --------
        >>> from ringlet.collectives import Group
        >>> Group(1).member(0).all_reduce_many([[1, 2], 3.0], Op.MEAN)
        [array([1., 2.]), array(3.)]
        """
        if type(op) is not Op or type(algorithm) is not Algorithm:
            refuse_selection(op, algorithm)
        arrays = as_sequence(arrays, "arrays")
        if outs is not None:
            outs = as_sequence(outs, "outs")
        if bytes_per_pack == 0:
            try:
                return self._core.all_reduce(arrays, op._value_, algorithm._value_, outs)
            except _core.Unusable:
                pass
            except InvalidArgumentError:
                check_pairs(arrays, op)
                raise
            return _all_reduce(self._core, arrays, op, algorithm, outs)
        buffers, outputs = _converted(arrays, op, outs)
        ends = pass_ends([buffer.nbytes for buffer in buffers], bytes_per_pack)
        # Passes of ranks with different arrays may have equal shapes, so the passes alone would not reveal a mismatch.
        self._core.barrier(f"all_reduce_many({len(buffers)} arrays, bytes_per_pack={bytes_per_pack})")
        results: list[Array] = []
        for begin, end in zip([0, *ends], ends, strict=False):
            places = None if outputs is None else outputs.direct[begin:end]
            results += self._core.all_reduce(buffers[begin:end], op.value, algorithm.value, places)
        return in_kinds_of(arrays, results) if outputs is None else outputs.store()

    def reduce(self, x: Any, op: Op = Op.SUM, root: int = 0, *, out: Array | None = None) -> Array | None:
        """Combine the arrays of all ranks and return the result on one rank.

        Parameters
        ----------
        x : array-like
            This rank's array, with the same shape and dtype on all ranks, in any memory layout.
        op : Op
            See :class:`Op` for the supported dtypes.
        root : int
            The rank that receives the result.
        out : ndarray, optional
            Array for the result, passed by the root only; may be the root's `x`.

        Returns
        -------
        ndarray or None
            On the root `out` or a read-only array, with the bits of :meth:`all_reduce`; None on other ranks.

        Raises
        ------
        InvalidArgumentError
            If the operation does not support the dtype, `root` is out of range, another rank passes `out`, or `out`
            does not fit.

        Notes
        -----
        One step. For S bytes on each of P ranks, all ranks together read P·S bytes and write S.

        Examples
        --------
        >>> from ringlet.testing import run_on_ranks
        >>> run_on_ranks(3, lambda member: member.reduce(np.full(2, member.rank), root=1))
        [None, array([3, 3]), None]
        """
        if type(op) is not Op:
            refuse_selection(op)
        root = root_of(root, self.num_ranks)
        if out is not None and root != self.rank:
            root_only("out", self.rank, root)
        core = self._core
        result: Array | None = _same_shape(x, op, out, lambda array, place: core.reduce(array, op._value_, root, place))
        return result

    def reduce_scatter(self, x: Any, op: Op = Op.SUM, *, axis: int = 0, out: Array | None = None) -> Array:
        """Combine the arrays of all ranks and return on each rank its block of the result.

        Parameters
        ----------
        x : array-like
            This rank's array, with the same shape and dtype on all ranks, in any memory layout.
        op : Op
            See :class:`Op` for the supported dtypes.
        axis : int
            Axis along which the result is split into equal blocks, the same on all ranks; negative axes count from the
            last. An axis other than 0 costs a copy and a step in which the ranks compare axes.
        out : ndarray, optional
            Array for this rank's block. Along axis 0 it may be this rank's block of `x`.

        Returns
        -------
        ndarray
            `out`, or a read-only array: block `rank` of the result of :meth:`all_reduce`, of the shape of `x` except
            for ``x.shape[axis] // num_ranks`` along `axis`.

        Raises
        ------
        InvalidArgumentError
            If the operation does not support the dtype, `axis` is out of range, its size is not a multiple of the
            number of ranks, or `out` does not fit.

        Notes
        -----
        One step. For S bytes on each of P ranks, all ranks together read P·S bytes and write S.

        Examples
        --------
        >>> from ringlet.testing import run_on_ranks
        >>> run_on_ranks(2, lambda member: member.reduce_scatter(np.arange(4)))
        [array([0, 2]), array([4, 6])]
        """
        if type(op) is not Op:
            refuse_selection(op)
        if type(axis) is int and axis == 0 and type(x) is np.ndarray and x.ndim:
            try:
                return self._core.reduce_scatter(x, op._value_, out)
            except _core.Unusable:
                pass
            except InvalidArgumentError:
                check_pair(x.dtype, op)
                equal_counts(x.shape, 0, self.num_ranks)
                raise
        result: Array = _reduce_scatter(self._core, x, op, axis, out)
        return result

    def exclusive_scan(self, x: Any, op: Op = Op.SUM, *, out: Array | None = None) -> Array:
        """Combine, for each rank, the arrays of all lower ranks.

        Parameters
        ----------
        x : array-like
            This rank's array, with the same shape and dtype on all ranks, in any memory layout.
        op : Op
            Any operation except MEAN.
        out : ndarray, optional
            Array for the result of this rank; may be `x` itself.

        Returns
        -------
        ndarray
            `out`, or a read-only array: the combination of ranks 0 to ``rank - 1``, from left to right. Rank 0 receives
            the identity: 0 for SUM, OR and XOR, 1 for PROD, all bits set (or True) for AND, the largest value (infinity
            if the dtype has it) for MIN, the smallest for MAX.

        Raises
        ------
        InvalidArgumentError
            If the operation is MEAN or does not support the dtype, or `out` does not fit.

        Examples
        --------
        >>> from ringlet.testing import run_on_ranks
        >>> run_on_ranks(3, lambda member: member.exclusive_scan(np.int32(10 + member.rank)).item())
        [0, 10, 21]
        """
        if type(op) is not Op:
            refuse_selection(op)
        if op is Op.MEAN:
            raise InvalidArgumentError(
                "exclusive_scan does not support MEAN: use SUM and, on ranks above 0, divide by the rank."
            )
        core = self._core
        result: Array = _same_shape(x, op, out, lambda array, place: core.exclusive_scan(array, op._value_, place))
        return result

    def plan_all_reduce(
        self, x: Any, op: Op = Op.SUM, *, algorithm: Algorithm = Algorithm.AUTO, out: Array | None = None
    ) -> Callable[[], Array]:
        """Prepare an all-reduce of one array that runs many times.

        The arguments are checked only once: checks are most of the cost of small calls.

        Parameters
        ----------
        x : ndarray, or object with the buffer protocol, ``__array__`` or ``__dlpack__``
            The array whose current values each run combines. The plan keeps its memory alive.
        op, algorithm
            As for :meth:`all_reduce`.
        out : ndarray, optional
            Array for the result of each run; may be `x` itself.

        Returns
        -------
        callable
            Takes no arguments. Each run returns the result of :meth:`all_reduce`: `out`, or a new read-only array. All
            ranks run their plans, or make the equivalent call.

        Raises
        ------
        InvalidArgumentError
            If `x` is not an array, the operation does not support the dtype, or `out` does not fit.

        Examples
        --------
        >>> from ringlet.collectives import Group
        >>> x = np.zeros(2)
        >>> plan = Group(1).member(0).plan_all_reduce(x)
        >>> x += 1
        >>> plan()
        array([1., 1.])
        """
        if type(op) is not Op or type(algorithm) is not Algorithm:
            refuse_selection(op, algorithm)
        return make_plan(self._core, x, op, algorithm, out)


def _all_reduce(
    core: _core.Member, arrays: Sequence[Any], op: Op, algorithm: Algorithm, outs: Sequence[Any] | None
) -> list[Array]:
    buffers, outputs = _converted(arrays, op, outs)
    if outputs is None:
        return in_kinds_of(arrays, core.all_reduce(buffers, op.value, algorithm.value, None))
    core.all_reduce(buffers, op.value, algorithm.value, outputs.direct)
    return outputs.store()


def _converted(
    arrays: Sequence[Any], op: Op, outs: Sequence[Any] | None
) -> tuple[list[Array], Outputs | AdapterOutputs | None]:
    buffers = as_buffers(arrays)
    check_pairs(buffers, op)
    return buffers, outputs_for(arrays, buffers, op, outs)


def _same_shape(x: Any, op: Op, out: Array | None, call: Callable[[Any, Array | None], Any]) -> Any:
    """Make a call whose result has the shape of its input; convert the arguments if the core cannot use them."""
    try:
        return call(x, out)
    except _core.Unusable:
        pass
    except InvalidArgumentError:
        check_pairs((x,), op)
        raise
    buffer = as_buffer(x)
    check_pair(buffer.dtype, op)
    if out is None:
        result = call(buffer, None)
        return None if result is None else in_kind_of(x, result, is_own=True)
    output = Output(out, buffer.shape, as_result(buffer.dtype, op))
    call(copy_if_overlapping(output.direct, buffer), output.direct)
    return output.store()


def _reduce_scatter(core: _core.Member, x: Any, op: Op, axis: int, out: Array | None) -> Any:
    buffer = as_buffer(x)
    check_pair(buffer.dtype, op)
    axis = axis_in(buffer.ndim, axis)
    size = equal_counts(buffer.shape, axis, core.num_ranks)
    shape = (*buffer.shape[:axis], size, *buffer.shape[axis + 1 :])
    output = None if out is None else Output(out, shape, as_result(buffer.dtype, op), axis=axis)
    if axis:  # compare the axes here, because the core does not
        core.barrier(f"reduce_scatter(axis={axis})")
    front = np.ascontiguousarray(np.moveaxis(buffer, axis, 0))
    if output is None:
        return in_kind_of(x, np.moveaxis(core.reduce_scatter(front, op.value, None), 0, axis), is_own=True)
    core.reduce_scatter(copy_if_overlapping(output.direct, front), op.value, output.direct)
    return output.store()
