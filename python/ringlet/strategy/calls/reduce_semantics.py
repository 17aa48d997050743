"""Semantics of ``strategy.reduce``: operations, axes, and values that are not distributed."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ringlet import nest
from ringlet.collectives import Op, ReduceOp, all_reduce_buffers
from ringlet.collectives.adapters.array_adapters import common_kind, in_kind_of, in_memory, kind_of, result_memory
from ringlet.collectives.argument_parsing import axis_in
from ringlet.collectives.buffers import as_ndarray
from ringlet.collectives.collective_dtypes import ML_NAMES
from ringlet.errors import InvalidArgumentError
from ringlet.values import DistributedValues, IndexedSlices, Mirrored, PerReplica, leaf_columns
from ringlet.values.indexed_slices import reduce_slices

if TYPE_CHECKING:
    from ringlet.strategy.api.extended import StrategyExtended

Array = NDArray[Any]

# Types that this module converts to arrays itself, which is cheaper than the general path.
NUMBER_TYPES = frozenset({bool, int, float, np.float32, np.float64, np.int32, np.int64})

_OPS = {ReduceOp.SUM: Op.SUM, ReduceOp.MEAN: Op.MEAN}


def as_op(op: ReduceOp) -> Op:
    """Return the core's operation for a reduction."""
    return _OPS[op]


def parse_reduce_op(op: Any) -> ReduceOp:
    """Return the operation for a case-insensitive name; return an operation unchanged."""
    if isinstance(op, ReduceOp):
        return op
    if not isinstance(op, str):
        raise TypeError(f"Expected `reduce_op` to be a ReduceOp, or 'SUM' or 'MEAN', not: {op!r}")
    try:
        return ReduceOp(op.upper())
    except ValueError:
        names = " or ".join(repr(member.name) for member in ReduceOp)
        raise ValueError(f"{op.upper()!r} is not a valid ReduceOp: use {names}") from None


def reduce_components(op: ReduceOp, value: DistributedValues[Any], num_replicas: int) -> Any:
    """Combine the components of a distributed value, which may be nested structures; NumPy results are read-only.

    A single component is not copied; a variable is read.
    """
    components = value.values
    if len(components) != num_replicas:
        check_count(value, num_replicas)
    if len(components) == 1:
        return read_component(components[0])
    kind = type(components[0])
    if kind is np.ndarray:
        return all_reduce_buffers(components, _OPS[op])
    if kind in NUMBER_TYPES:
        return all_reduce_buffers([np.asarray(number) for number in components], _OPS[op])
    columns, shape = leaf_columns(components, "reduce")
    return nest.unflatten(shape, [_reduce_column(op, column) for column in columns])


def _reduce_column(op: ReduceOp, column: Sequence[Any]) -> Any:
    if all(isinstance(leaf, IndexedSlices) for leaf in column):
        return reduce_slices(op, column)
    return all_reduce_buffers(column, _OPS[op])


def check_count(value: DistributedValues[Any], num_replicas: int) -> None:
    """Raise ValueError unless a value has one component for each replica."""
    if len(value.values) != num_replicas:
        raise ValueError(
            f"a {type(value).__name__} with {len(value.values)} components cannot be reduced over {num_replicas} "
            "replicas: it belongs to another strategy. Reduce it with that strategy"
        )


def reduce_plain(op: ReduceOp, value: Any, num_replicas: int) -> Any:
    """Combine a value that is the same on all replicas: MEAN, SUM of zeros and SUM over one replica return the value.

    Any other SUM raises ValueError, because the intended number of summands is unknown.
    """
    if op is ReduceOp.MEAN or num_replicas == 1 or _is_zero(value):
        return value
    is_number = isinstance(value, (int, float, complex))
    equal = "; equal small integers and constants are one object in Python: return np.asarray(count) from the step"
    raise ValueError(
        f"A non-DistributedValues value {value} cannot be reduced with the given reduce op {op}: it is the same object "
        f"on all {num_replicas} replicas. Use MEAN, which returns it unchanged, or multiply it by "
        f"num_replicas_in_sync{equal if is_number else ''}"
    )


def reduce_mirrored(op: ReduceOp, value: DistributedValues[Any], num_replicas: int) -> Any:
    """Combine a distributed value that is equal on all replicas: MEAN returns the first component.

    SUM over several replicas raises ValueError, because the intended number of summands is unknown.
    """
    if op is ReduceOp.SUM and num_replicas > 1:
        raise ValueError(
            f"a {type(value).__name__} cannot be reduced with the given reduce op {op}: it is the same on all "
            f"{num_replicas} replicas. Use MEAN, which returns it unchanged, or multiply it by num_replicas_in_sync"
        )
    return read_component(value.values[0])


def read_component(component: Any) -> Any:
    """Return the current value of a variable; return any other component unchanged."""
    kind = type(component)
    if kind is np.ndarray or kind in NUMBER_TYPES:
        return component
    read = getattr(component, "read_value", None)
    return component if read is None else read()


def is_mirrored(value: DistributedValues[Any]) -> bool:
    """Return whether components are equal by definition: those of a Mirrored, or of a variable not combined on read."""
    if isinstance(value, Mirrored):
        return True
    synchronization = getattr(value, "synchronization", None)
    return synchronization is not None and synchronization.name != "ON_READ"


def _is_zero(value: Any) -> bool:
    array = as_ndarray(value)
    return array.dtype.kind in "biufc" and not array.any()


def reduce_over_axis(extended: StrategyExtended, op: ReduceOp, value: Any, axis: int | tuple[int, ...]) -> Any:
    """Reduce each component along axes, and the results over the replicas.

    MEAN divides by the number of elements of all components along the axes. A leaf that is not distributed is counted
    once for each replica.
    """
    axes = _checked_axes(axis)
    return nest.map_structure(lambda leaf: _reduce_leaf_over_axes(extended, op, leaf, axes), value)


def _checked_axes(axis: Any) -> tuple[int, ...]:
    entries = axis if isinstance(axis, tuple) else (axis,)
    try:
        return tuple(_as_index(entry) for entry in entries)
    except TypeError:
        raise TypeError(
            f"axis must be None, an int or a tuple of ints, got {axis!r} of type {type(axis).__name__}. "
            "Write several axes as a tuple, such as (0, 1)"
        ) from None


def _as_index(entry: Any) -> int:
    if isinstance(entry, bool):
        raise TypeError
    # TensorFlow accepts 0.0 as 0.
    return int(entry) if isinstance(entry, float) and entry.is_integer() else operator.index(entry)


def _reduce_leaf_over_axes(extended: StrategyExtended, op: ReduceOp, leaf: Any, axes: tuple[int, ...]) -> Any:
    if not isinstance(leaf, DistributedValues):
        return _reduce_column_over_axes(extended, op, (leaf,) * extended._num_local_replicas, axes)
    check_count(leaf, extended._num_local_replicas)
    columns, shape = leaf_columns([read_component(component) for component in leaf.values], "reduce")
    return nest.unflatten(shape, [_reduce_column_over_axes(extended, op, column, axes) for column in columns])


def _reduce_column_over_axes(
    extended: StrategyExtended, op: ReduceOp, components: Sequence[Any], axes: tuple[int, ...]
) -> Any:
    common_kind(components)
    arrays = [as_ndarray(component) for component in components]
    for array in arrays:
        _check_axes(array, axes)
    sums = [_sum_along(array, axes) for array in arrays]
    total = _over_replicas(extended, [in_kind_of(*pair, is_own=True) for pair in zip(components, sums, strict=True)])
    if op is ReduceOp.SUM:
        return total
    counts = [np.asarray(math.prod(array.shape[axis] for axis in axes), np.int64) for array in arrays]
    return divide(total, int(_over_replicas(extended, counts)))


def _check_axes(array: Array, axes: tuple[int, ...]) -> None:
    places = [axis_in(array.ndim, axis) for axis in axes]
    if len(set(places)) < len(places):
        raise InvalidArgumentError(f"axis is {axes}, which names an axis of shape {array.shape} twice: name it once")


def _over_replicas(extended: StrategyExtended, components: list[Any]) -> Any:
    return extended._reduce(ReduceOp.SUM, PerReplica(components))


def _sum_along(array: Array, axes: tuple[int, ...]) -> Array:
    if array.dtype.name in ML_NAMES:  # long sums in these narrow dtypes would stop growing
        return np.asarray(np.add.reduce(array, axis=axes, dtype=np.float32)).astype(array.dtype)
    if array.dtype.kind not in "iufc":
        raise TypeError(
            f"cannot add along an axis of an array of dtype {array.dtype}: convert it to a numeric dtype first"
        )
    # Keep the dtype: NumPy would widen small integers, but the strategy's sums over replicas wrap around.
    return np.asarray(np.add.reduce(array, axis=axes, dtype=array.dtype))


def divide(total: Any, count: int) -> Any:
    """Divide a sum as MEAN does: floats in their own dtype, integers in float32 (8 and 16 bits) or float64.

    0 divided by a count of 0 is nan, without a warning, as in TensorFlow.
    """
    array = as_ndarray(total)
    dtype = array.dtype
    if dtype.kind in "iu":
        dtype = np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)
    memory = None if kind_of(total) is None else result_memory(array.shape, dtype)
    with np.errstate(all="ignore"):
        mean = np.asarray(np.true_divide(array, dtype.type(count), out=memory and memory[0], dtype=dtype))
    if memory is not None:
        return in_memory(total, memory)
    mean.setflags(write=False)
    return mean
