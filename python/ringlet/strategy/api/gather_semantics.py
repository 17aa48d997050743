"""What ``strategy.gather`` means: the components of a value, one behind the other."""

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
from ringlet.strategy.api.reduce_semantics import check_count, settled
from ringlet.values import DistributedValues, leaf_columns

__all__ = ["gather_alone", "gather_components", "refuse_slices"]


def gather_components(components: Sequence[Any], axis: Any) -> Any:
    """Join arrays, or nested structures of them leaf by leaf.

    Parameters
    ----------
    components : sequence of array-like
        In replica order, of one dtype. Sizes along `axis` may differ; all else is equal.
    axis : int
        Negative ones count from the last.

    Returns
    -------
    nested structure of ndarray
        Read-only; a single component as it is.

    Raises
    ------
    InvalidArgumentError
        If the arrays cannot be joined.
    ValueError
        If the structures differ.

    Examples
    --------
    >>> gather_components([np.array([1, 2]), np.array([3])], 0)
    array([1, 2, 3])
    """
    if len(components) == 1:
        return settled(components[0])
    columns, shape = leaf_columns(components, "gather")
    return nest.unflatten(shape, [_join(column, axis) for column in columns])


def gather_alone(value: Any) -> Any:
    """Give what a strategy of one replica gathers: the component of that replica, or what is no distributed value.

    Raises
    ------
    ValueError
        If there are other components.

    Examples
    --------
    >>> gather_alone("as it is")
    'as it is'
    """
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
                f"cannot gather along axis {axis}: replica 0 has {first.dtype}{list(first.shape)}, replica {replica} "
                f"{array.dtype}{list(array.shape)}. Only sizes along the axis may differ"
            )
    if is_other:
        return _joined_like(column[0], arrays, place)
    joined = np.concatenate(arrays, axis=place)
    joined.setflags(write=False)
    return joined


def _joined_like(value: Any, arrays: Sequence[NDArray[Any]], axis: int) -> Any:
    """Arrays of another library, one behind the other."""
    first = arrays[0]
    length = sum(array.shape[axis] for array in arrays)
    memory = result_memory((*first.shape[:axis], length, *first.shape[axis + 1 :]), first.dtype)
    np.concatenate(arrays, axis=axis, out=memory[0])
    return in_memory(value, memory)


def _others(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def refuse_slices(structure: Any, method: str) -> None:
    """Refuse slices of variables, which have rows and their places instead of an array.

    Raises
    ------
    NotImplementedError
        If there are any.

    Examples
    --------
    >>> refuse_slices([1.5], "gather")
    """
    for leaf in nest.flatten(structure)[0]:
        parts = nest.flatten(leaf.values)[0] if isinstance(leaf, DistributedValues) else (leaf,)
        for part in parts:
            # Tensors of torch have methods of these names.
            if hasattr(part, "indices") and hasattr(part, "values") and kind_of(part) is None:
                raise NotImplementedError(
                    f"{method} does not support IndexedSlices: gather their values and their indices, each by itself"
                )
