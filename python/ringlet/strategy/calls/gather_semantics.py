"""Semantics of ``strategy.gather``: concatenation of the components of a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet import nest
from ringlet.collectives.adapters.array_adapters import common_kind, in_memory, kind_of, result_memory
from ringlet.collectives.argument_parsing import axis_in
from ringlet.collectives.buffers import as_ndarray
from ringlet.errors import InvalidArgumentError
from ringlet.strategy.calls.reduce_semantics import check_count, read_component
from ringlet.values import DistributedValues, leaf_columns


def gather_components(components: Sequence[Any], axis: Any) -> Any:
    """Concatenate arrays, or structures leaf by leaf; NumPy results are read-only. One component is not copied."""
    if len(components) == 1:
        return read_component(components[0])
    columns, shape = leaf_columns(components, "gather")
    return nest.unflatten(shape, [_join(column, axis) for column in columns])


def gather_single(value: Any) -> Any:
    """Return the only component of a distributed value; return any other value unchanged."""
    if not isinstance(value, DistributedValues):
        return value
    check_count(value, 1)
    return value.values[0]


def _join(column: Sequence[Any], axis: Any) -> Any:
    is_other = common_kind(column) is not None
    arrays = [as_ndarray(array) for array in column]
    first = arrays[0]
    place = axis_in(first.ndim, axis)
    for replica, array in enumerate(arrays):
        fits = array.ndim == first.ndim and array.dtype == first.dtype
        if not fits or _others(array.shape, place) != _others(first.shape, place):
            raise InvalidArgumentError(
                f"cannot gather along axis {axis}: replica 0 has {first.dtype}{list(first.shape)}, but replica "
                f"{replica} has {array.dtype}{list(array.shape)}. Only sizes along the axis may differ"
            )
    if is_other:
        return _concatenate_like(column[0], arrays, place)
    joined = np.concatenate(arrays, axis=place)
    joined.setflags(write=False)
    return joined


def _concatenate_like(value: Any, arrays: Sequence[NDArray[Any]], axis: int) -> Any:
    first = arrays[0]
    length = sum(array.shape[axis] for array in arrays)
    memory = result_memory((*first.shape[:axis], length, *first.shape[axis + 1 :]), first.dtype)
    np.concatenate(arrays, axis=axis, out=memory[0])
    return in_memory(value, memory)


def _others(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def refuse_slices(structure: Any, method: str) -> None:
    """Raise NotImplementedError if a structure contains IndexedSlices."""
    for leaf in nest.flatten(structure)[0]:
        parts = nest.flatten(leaf.values)[0] if isinstance(leaf, DistributedValues) else (leaf,)
        for part in parts:
            # PyTorch tensors also have methods with these names.
            if hasattr(part, "indices") and hasattr(part, "values") and kind_of(part) is None:
                raise NotImplementedError(
                    f"{method} does not support IndexedSlices: gather their values and their indices separately"
                )
