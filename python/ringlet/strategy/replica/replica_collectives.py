"""One replica's part of each collective; used by :class:`~ringlet.strategy.ReplicaContext`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives import Member, Op, ReduceOp
from ringlet.collectives.adapters.array_adapters import in_kind_of, kind_of, own_copy
from ringlet.collectives.argument_parsing import axis_in
from ringlet.collectives.buffers import Outputs, as_buffer, as_ndarray
from ringlet.collectives.collective_dtypes import as_result, is_known, native
from ringlet.errors import CollectiveMismatchError, InvalidArgumentError
from ringlet.strategy.calls.call_options import CallOptions
from ringlet.strategy.calls.reduce_semantics import as_op, divide
from ringlet.strategy.replica.watchdog import Watchdog
from ringlet.values import IndexedSlices, PerReplica

if TYPE_CHECKING:
    from ringlet.strategy.api.strategy import Strategy
    from ringlet.strategy.replica.step_execution import ReplicaRun

Array = NDArray[Any]
T = TypeVar("T")


# --- several replicas -------------------------------------------------------------------------------------------------


def all_reduce_leaves(
    run: ReplicaRun,
    replica: int,
    op: ReduceOp,
    leaves: list[Any],
    *,
    shape: Any,
    options: Any,
    outs: list[Any] | None,
) -> list[Any]:
    """Combine the arrays of one replica with the arrays of the other replicas.

    `replica` is the index among the replicas of this process; `shape` is the structure (PyTreeSpec or KindShape) of the
    leaves.
    """
    shapes = run.shapes
    if run.whole_batch and any(leaf is arg for leaf in leaves for arg in run._rows[replica]):
        run.whole_batch = 0
    if options is None and run.is_plain:  # fast path for most calls, which go directly to the core
        shapes.record(replica, shape, "all_reduce")
        try:
            member = run.members[replica]
            results = member.all_reduce_many(leaves, as_op(op), algorithm=run.ops.algorithm, outs=outs)
            shapes.compare(replica, shape)
            return results
        except InvalidArgumentError:  # raised before this rank entered the collective, so the rank may retry
            if outs is not None or not _has_slices(leaves):
                raise
        except CollectiveMismatchError as error:
            raise shapes.explain(replica, error) from error.__cause__
    resolved = run.call_options(options)

    def combine() -> list[Any]:
        shapes.record(replica, shape, "all_reduce")
        try:
            results = _combine(run, replica, op, leaves, resolved=resolved, options=options, outs=outs)
        except CollectiveMismatchError as error:
            raise shapes.explain(replica, error) from error.__cause__
        shapes.compare(replica, shape)
        return results

    return _in_time(run, replica, "all_reduce", resolved.timeout_seconds, combine)


def all_gather_leaves(
    run: ReplicaRun, replica: int, leaves: list[Any], axis: Any, *, shape: Any, options: Any
) -> list[Any]:
    """Join the arrays of one replica with the other replicas' arrays; arguments as in :func:`all_reduce_leaves`."""
    resolved = run.call_options(options)
    arrays = [as_ndarray(leaf) for leaf in leaves]
    for array in arrays:
        axis_in(array.ndim, axis)  # raises an error before other replicas start to wait

    def gather() -> list[Any]:
        run.shapes.record(replica, shape, "all_gather")
        if not arrays:
            run.members[replica].barrier("all_gather of nothing")
        try:
            results = [
                _gather_array(run, replica, leaf, array, axis) for leaf, array in zip(leaves, arrays, strict=True)
            ]
        except CollectiveMismatchError as error:
            raise run.shapes.explain(replica, error) from error.__cause__
        run.shapes.compare(replica, shape)
        return results

    return _in_time(run, replica, "all_gather", resolved.timeout_seconds, gather)


def _in_time(run: ReplicaRun, replica: int, name: str, seconds: float, call: Callable[[], T]) -> T:
    """Make a collective call, and abort the group if it takes longer than `seconds` (0: no limit)."""
    if not seconds:
        return call()
    count = run.strategy.num_replicas_in_sync
    text = (
        f"replica {run.first_replica + replica} of {count} waited {seconds:g} s, the timeout_seconds of its "
        f"CommunicationOptions, for the other replicas in {name}: check what they execute, or allow more time"
    )
    with Watchdog(seconds, run.abort, lambda: text):
        return call()


def _combine(
    run: ReplicaRun,
    replica: int,
    op: ReduceOp,
    leaves: list[Any],
    *,
    resolved: CallOptions,
    options: Any,
    outs: list[Any] | None,
) -> list[Any]:
    if outs is None and _has_slices(leaves):
        return _reduce_with_slices(run, replica, op, leaves, resolved=resolved, options=options)
    if run.writable_results and outs is None:
        buffers = [as_buffer(leaf) for leaf in leaves]
        outs = [np.empty(buffer.shape, as_result(buffer.dtype, as_op(op))) for buffer in buffers]
        results = _combine(run, replica, op, buffers, resolved=resolved, options=options, outs=outs)
        return [in_kind_of(leaf, result, is_own=True) for leaf, result in zip(leaves, results, strict=True)]
    if not run.ops._is_core:
        return _reduce_by_ops(run, replica, op, leaves, options=options, outs=outs)
    member = run.members[replica]
    pack, algorithm = resolved.bytes_per_pack, resolved.algorithm
    return member.all_reduce_many(leaves, as_op(op), algorithm=algorithm, outs=outs, bytes_per_pack=pack)


def _has_slices(leaves: Sequence[Any]) -> bool:
    return any(isinstance(leaf, IndexedSlices) for leaf in leaves)


def _reduce_with_slices(
    run: ReplicaRun, replica: int, op: ReduceOp, leaves: list[Any], *, resolved: CallOptions, options: Any
) -> list[Any]:
    """Combine the arrays of all replicas, and concatenate the rows of their IndexedSlices."""
    member = run.members[replica]
    arrays = [leaf for leaf in leaves if not isinstance(leaf, IndexedSlices)]
    rest = iter(_combine(run, replica, op, arrays, resolved=resolved, options=options, outs=None))
    return [_join_slices(member, op, leaf) if isinstance(leaf, IndexedSlices) else next(rest) for leaf in leaves]


def _join_slices(member: Member, op: ReduceOp, slices: IndexedSlices) -> IndexedSlices:
    rows, indices = member.all_gather(slices.values), member.all_gather(slices.indices)
    if op is ReduceOp.MEAN:
        rows = divide(rows, member.num_ranks)
    return IndexedSlices(rows, indices, slices.dense_shape)


def _gather_array(run: ReplicaRun, replica: int, leaf: Any, array: Array, axis: int) -> Any:
    if is_known(native(array.dtype)):
        return run.members[replica].all_gather(array if kind_of(leaf) is None else leaf, axis=axis)
    # The core does not support these values, such as text: one replica concatenates them for all replicas.
    return run.merge_call(replica, _join_cells, (_Cell(array), _Cell(axis)), {})


def _reduce_by_ops(
    run: ReplicaRun, replica: int, op: ReduceOp, leaves: list[Any], *, options: Any, outs: list[Any] | None
) -> list[Any]:
    """Combine arrays with a user's CrossDeviceOps: in cross-replica context, once for all replicas."""
    buffers = [as_buffer(leaf) for leaf in leaves]
    outputs = None if outs is None else Outputs(outs, buffers, as_op(op))

    def merge(strategy: Strategy, cells: PerReplica[_Cell]) -> list[Any]:
        columns = zip(*(cell.content for cell in cells.values), strict=True)
        values = [PerReplica(column) for column in columns]
        return strategy.extended._batch_reduce_to(op, [(value, value) for value in values], options)

    results: list[Any] = run.merge_call(replica, merge, (_Cell(buffers),), {})
    if outputs is None:  # a separate object for each replica, like the results of the core
        return [
            in_kind_of(leaf, result.view()) if isinstance(result, np.ndarray) else result
            for leaf, result in zip(leaves, results, strict=True)
        ]
    for place, result in zip(outputs.direct, results, strict=True):
        place[...] = result
    return outputs.store()


class _Cell:
    """Wrapper that keeps identical values of several replicas from being regrouped into one."""

    __slots__ = ("content",)

    def __init__(self, content: Any) -> None:
        self.content = content


def _join_cells(strategy: Strategy, cells: Any, axes: Any) -> Any:
    # With one replica in this process, the value is not wrapped in a PerReplica.
    components = PerReplica([cell.content for cell in strategy.experimental_local_results(cells)])
    return strategy.extended._gather(components, strategy.experimental_local_results(axes)[0].content)


# --- one replica ------------------------------------------------------------------------------------------------------


def all_reduce_single(leaves: Sequence[Any], outs: list[Any] | None, is_writable: bool) -> list[Any]:
    """Return copies of a single replica's values, but IndexedSlices unchanged; or return `outs` with these values."""
    if outs is None:
        return [leaf if isinstance(leaf, IndexedSlices) else _own_copy(leaf, is_writable) for leaf in leaves]
    results = [_own_copy(as_ndarray(leaf), False) for leaf in leaves]
    outputs = Outputs(outs, results, Op.SUM)
    for place, result in zip(outputs.direct, results, strict=True):
        place[...] = result
    return outputs.store()


def all_gather_single(leaves: Sequence[Any]) -> list[Any]:
    """Return copies of a single replica's values; NumPy copies are read-only."""
    return [_copy_to_read(leaf) for leaf in leaves]


def _copy_to_read(leaf: Any) -> Any:
    if kind_of(leaf) is not None:
        return own_copy(leaf)
    result = np.array(as_ndarray(leaf))
    result.setflags(write=False)
    return result


def _own_copy(leaf: Any, is_writable: bool) -> Any:
    if type(leaf) is not np.ndarray and kind_of(leaf) is not None:
        return own_copy(leaf)
    array = leaf if isinstance(leaf, np.ndarray) else np.asarray(leaf)
    # As in TensorFlow, a single replica may pass numbers of any dtype; other values are rejected, as with several
    # replicas.
    copy = np.array(array, array.dtype.newbyteorder("=")) if array.dtype.kind in "biufc" else np.array(as_buffer(leaf))
    copy.setflags(write=is_writable)
    return copy
