"""Values of the replicas of all workers, combined outside of replicas: what ``reduce`` and ``gather`` do there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ringlet import nest
from ringlet.collectives import Member, ReduceOp
from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.argument_parsing import axis_in
from ringlet.collectives.buffers import as_ndarray
from ringlet.collectives.collective_dtypes import is_known, native
from ringlet.errors import InvalidArgumentError
from ringlet.strategy.api.call_options import CallOptions
from ringlet.strategy.api.gather_semantics import gather_components
from ringlet.strategy.api.reduce_semantics import as_op, divide, settled
from ringlet.strategy.multi_worker.string_codec import text_from_bytes, text_to_bytes
from ringlet.strategy.multi_worker.worker_group import Workers
from ringlet.values import IndexedSlices, leaf_columns

__all__ = ["gather_over_workers", "reduce_over_workers"]

Array = NDArray[Any]
# What one replica after the other of this process has for one place of a structure.
Column = Sequence[Any]


def reduce_over_workers(
    workers: Workers, op: ReduceOp, values: Sequence[Sequence[Any]], shape: nest.PyTreeSpec, asked: CallOptions
) -> list[Any]:
    """Combine values of the replicas of all workers, all of them in one pass; with the bits of a replica's all_reduce.

    Parameters
    ----------
    workers : Workers
    op : ReduceOp
    values : sequence
        Each with what the replicas of this process have of it, which may be nested structures.
    shape : PyTreeSpec
        The structure that `values` are the leaves of.
    asked : CallOptions

    Returns
    -------
    list of nested structure
        The result for each of `values`.

    Raises
    ------
    InvalidArgumentError
        If the replicas of this process do not fit each other; no other worker takes notice.
    CollectiveMismatchError
        If the workers do not fit each other; on all of them.
    """
    taken = [leaf_columns([settled(part) for part in components], "reduce") for components in values]
    columns = [column for parts, _ in taken for column in parts]
    dense = [_checked(column) for column in columns if not _is_slices(column)]
    workers.agree([shape, *(inner for _, inner in taken)])
    operation = as_op(op)

    def call(local: int, member: Member) -> list[Any]:
        arrays = [column[local] for column in dense]
        return member.all_reduce_many(arrays, operation, algorithm=asked.algorithm, bytes_per_pack=asked.bytes_per_pack)

    combined = iter(workers.together(call)[0] if dense else ())
    results = iter([_join_slices(workers, op, column) if _is_slices(column) else next(combined) for column in columns])
    return [nest.unflatten(inner, [next(results) for _ in parts]) for parts, inner in taken]


def gather_over_workers(workers: Workers, components: Sequence[Any], axis: Any) -> Any:
    """Join arrays of the replicas of all workers, one behind the other in the order of replicas.

    Parameters
    ----------
    workers : Workers
    components : sequence
        What the replicas of this process have: arrays, or nested structures of them.
    axis : int
        Sizes along it may differ; all else is equal.

    Returns
    -------
    nested structure of ndarray
        Read-only.

    Raises
    ------
    InvalidArgumentError
        If an array has no such axis; no other worker takes notice.
    CollectiveMismatchError
        If the workers do not fit each other; on all of them.
    """
    columns, shape = leaf_columns([settled(part) for part in components], "gather")
    for column in columns:
        for leaf in column:
            axis_in(as_ndarray(leaf).ndim, axis)
    workers.agree([shape])
    return nest.unflatten(shape, [_gather_column(workers, column, axis) for column in columns])


def _gather_column(workers: Workers, column: Column, axis: int) -> Any:
    arrays = [as_ndarray(leaf) for leaf in column]
    if all(is_known(native(array.dtype)) for array in arrays):
        leaves = [array if kind_of(leaf) is None else leaf for leaf, array in zip(column, arrays, strict=True)]
        return workers.together(lambda local, member: member.all_gather(leaves[local], axis=axis))[0]
    rounds = [workers.exchange(told) for told in [text_to_bytes(array) for array in arrays]]
    in_order = [each[worker] for worker in range(workers.num_workers) for each in rounds]
    return gather_components([text_from_bytes(told) for told in in_order], axis)


def _checked(column: Column) -> Column:
    """A column whose arrays are alike, so that no rank of this process makes a call that another one does not."""
    arrays = [as_ndarray(leaf) for leaf in column]
    first = arrays[0]
    for replica, array in enumerate(arrays):
        if array.shape != first.shape or array.dtype != first.dtype:
            raise InvalidArgumentError(
                f"the arrays to reduce differ: {first.dtype}{list(first.shape)} at replica 0 of this worker, "
                f"{array.dtype}{list(array.shape)} at replica {replica}. Give all replicas one shape and dtype."
            )
    return [array if kind_of(leaf) is None else leaf for leaf, array in zip(column, arrays, strict=True)]


def _is_slices(column: Column) -> bool:
    return isinstance(column[0], IndexedSlices)


def _join_slices(workers: Workers, op: ReduceOp, column: Column) -> IndexedSlices:
    rows = _gather_column(workers, [part.values for part in column], 0)
    indices = _gather_column(workers, [part.indices for part in column], 0)
    if op is ReduceOp.MEAN:
        rows = divide(rows, workers.cluster.num_ranks)
    return IndexedSlices(rows, indices, column[0].dense_shape)
