"""``reduce``, ``gather`` and initial values of variables over all workers, called outside of replicas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet import nest
from ringlet.collectives import Member, ReduceOp
from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.argument_parsing import axis_in
from ringlet.collectives.buffers import as_ndarray
from ringlet.collectives.collective_dtypes import is_known, native
from ringlet.errors import CollectiveAborted, CollectiveMismatchError, InvalidArgumentError
from ringlet.strategy.calls.call_options import CallOptions
from ringlet.strategy.calls.gather_semantics import gather_components
from ringlet.strategy.calls.reduce_semantics import as_op, divide, read_component
from ringlet.strategy.multi_worker.worker_group import WorkerGroup
from ringlet.strategy.replica.error_selection import one_line
from ringlet.values import IndexedSlices, leaf_columns

Array = NDArray[Any]
# One leaf of a structure: the values of this process's replicas, in order.
Column = Sequence[Any]


def reduce_over_workers(
    workers: WorkerGroup, op: ReduceOp, values: Sequence[Sequence[Any]], shape: nest.PyTreeSpec, options: CallOptions
) -> list[Any]:
    """Combine values of the replicas of all workers, bit for bit as a replica's all_reduce does.

    `values` holds, for each leaf of `shape`, the components of this process, which may be nested structures. If the
    structures of one process differ, only that process raises InvalidArgumentError; if workers differ, all raise
    CollectiveMismatchError.
    """
    flat = [leaf_columns([read_component(part) for part in components], "reduce") for components in values]
    columns = [column for parts, _ in flat for column in parts]
    dense = [_checked(column) for column in columns if not _is_slices(column)]
    workers.check_structures([shape, *(inner for _, inner in flat)], "reduce")
    operation = as_op(op)

    def call(local: int, member: Member) -> list[Any]:
        arrays = [column[local] for column in dense]
        return member.all_reduce_many(
            arrays, operation, algorithm=options.algorithm, bytes_per_pack=options.bytes_per_pack
        )

    combined = iter(workers.call_on_ranks(call)[0] if dense else ())
    results = iter([_join_slices(workers, op, column) if _is_slices(column) else next(combined) for column in columns])
    return [nest.unflatten(inner, [next(results) for _ in parts]) for parts, inner in flat]


def gather_over_workers(workers: WorkerGroup, components: Sequence[Any], axis: Any) -> Any:
    """Concatenate arrays of the replicas of all workers, in replica order."""
    columns, shape = leaf_columns([read_component(part) for part in components], "gather")
    for column in columns:
        for leaf in column:
            axis_in(as_ndarray(leaf).ndim, axis)
    workers.check_structures([shape], "gather")
    return nest.unflatten(shape, [_gather_column(workers, column, axis) for column in columns])


def _gather_column(workers: WorkerGroup, column: Column, axis: int) -> Any:
    arrays = [as_ndarray(leaf) for leaf in column]
    if all(is_known(native(array.dtype)) for array in arrays):
        leaves = [array if kind_of(leaf) is None else leaf for leaf, array in zip(column, arrays, strict=True)]
        return workers.call_on_ranks(lambda local, member: member.all_gather(leaves[local], axis=axis))[0]
    rounds = [workers.exchange(data) for data in [text_to_bytes(array) for array in arrays]]
    in_order = [each[worker] for worker in range(workers.num_workers) for each in rounds]
    return gather_components([text_from_bytes(data) for data in in_order], axis)


def _checked(column: Column) -> Column:
    """Return the arrays of a column; check that they have one shape and dtype, so that all ranks make the same call."""
    arrays = [as_ndarray(leaf) for leaf in column]
    first = arrays[0]
    for replica, array in enumerate(arrays):
        if array.shape != first.shape or array.dtype != first.dtype:
            raise InvalidArgumentError(
                f"the arrays to reduce differ in shape or dtype: {first.dtype}{list(first.shape)} on replica 0 of this "
                f"worker, {array.dtype}{list(array.shape)} on replica {replica}. Pass arrays of one shape and dtype."
            )
    return [array if kind_of(leaf) is None else leaf for leaf, array in zip(column, arrays, strict=True)]


def _is_slices(column: Column) -> bool:
    return isinstance(column[0], IndexedSlices)


def _join_slices(workers: WorkerGroup, op: ReduceOp, column: Column) -> IndexedSlices:
    rows = _gather_column(workers, [part.values for part in column], 0)
    indices = _gather_column(workers, [part.indices for part in column], 0)
    if op is ReduceOp.MEAN:
        rows = divide(rows, workers.cluster.num_ranks)
    return IndexedSlices(rows, indices, column[0].dense_shape)


# --- arrays of text, which collectives do not support -----------------------------------------------------------------


def text_to_bytes(array: NDArray[Any]) -> bytes:
    """Encode an array of strings or bytes, of a NumPy string dtype or of Python objects."""
    kinds = {type(item) for item in array.ravel().tolist()}
    if not kinds <= {str, bytes}:
        names = sorted(kind.__name__ for kind in kinds - {str, bytes})
        raise InvalidArgumentError(
            f"cannot exchange an array of {array.dtype} that holds {', '.join(names)} between processes: pass "
            "numbers, strings or bytes"
        )
    items = [item if isinstance(item, str) else {"bytes": item.decode("latin-1")} for item in array.ravel().tolist()]
    return json.dumps([array.dtype.str, array.shape, items]).encode()


def text_from_bytes(data: bytes) -> NDArray[Any]:
    """Decode the output of :func:`text_to_bytes`."""
    dtype, shape, items = json.loads(data)
    array: NDArray[Any] = np.empty(len(items), dtype)
    array[:] = [item if isinstance(item, str) else item["bytes"].encode("latin-1") for item in items]
    shaped: NDArray[Any] = array.reshape(shape)
    return shaped


# --- variables --------------------------------------------------------------------------------------------------------


def first_value_of_chief(workers: WorkerGroup, request: Any) -> NDArray[Any]:
    """Return the first worker's initial value; all workers raise an error if one fails or requests another variable."""
    value = problem = None
    try:
        value = request.first_value()
        mine = f"'{request.name or 'Variable'}' {value.dtype}{list(value.shape)}"
    except Exception as error:
        problem, mine = error, ""
    report = json.dumps([mine, problem and one_line(problem)]).encode()
    reports = [json.loads(each) for each in workers.exchange(report, "making a variable")]
    names = workers.cluster.names
    if problem is not None:
        raise problem
    for name, (_, failure) in zip(names, reports, strict=True):
        if failure is not None:
            raise CollectiveAborted(f"{name} could not create variable {mine}: {failure}")
    if any(requested != mine for requested, _ in reports):
        lines = "".join(f"\n  {name}: {requested}" for name, (requested, _) in zip(names, reports, strict=True))
        raise CollectiveMismatchError(
            f"the workers do not create the same variable:{lines}\nCreate the same variables in the same order, with "
            "equal names, shapes and dtypes, on every worker."
        )
    return workers.broadcast(value)
