"""IndexedSlices: selected rows of an array, and scatter updates with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives import ReduceOp
from ringlet.collectives.adapters.array_adapters import common_kind, in_kind_of, kind_of
from ringlet.collectives.argument_parsing import shortened
from ringlet.collectives.buffers import as_ndarray
from ringlet.errors import InvalidArgumentError
from ringlet.values.value_conversion import as_value
from ringlet.values.variables.storage import quietly

Array = NDArray[Any]


class IndexedSlices:
    """Sparse representation of an array by some of its rows (``tf.IndexedSlices``), such as the gradient of a lookup.

    Parameters
    ----------
    values : array-like, shape (n, ...)
        The rows.
    indices : array-like of int, shape (n,)
        The index of each row in the whole array. An index may occur more than once.
    dense_shape : sequence of int, optional
        Shape of the whole array.

    Examples
    --------
    >>> import ringlet
    >>> table = ringlet.Variable([1.0, 2.0, 3.0])
    >>> print(table.scatter_add(ringlet.IndexedSlices([10.0, 20.0], [2, 0])).read_value())
    [21.  2. 13.]
    """

    # Not a dataclass: dataclasses are nested structures, but this is a single value.
    __slots__ = ("_dense_shape", "_indices", "_values")

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values, self._indices, self._dense_shape = values, indices, dense_shape

    @property
    def values(self) -> Any:
        """The rows."""
        return self._values

    @property
    def indices(self) -> Any:
        """The index of each row in the whole array."""
        return self._indices

    @property
    def dense_shape(self) -> Any:
        """Shape of the whole array; None if unknown."""
        return self._dense_shape

    def __repr__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape!r}"
        return f"IndexedSlices(values={self._values!r}, indices={self._indices!r}{shape})"


def as_slices(value: Any) -> IndexedSlices:
    """Convert a value with ``indices`` and ``values`` to an IndexedSlices."""
    if isinstance(value, IndexedSlices):
        return value
    if hasattr(value, "indices") and hasattr(value, "values") and kind_of(value) is None:
        return IndexedSlices(value.values, value.indices)
    raise TypeError(
        f"a scatter takes an IndexedSlices, got {shortened(value)} of type {type(value).__name__}: write "
        "ringlet.IndexedSlices(values, indices)"
    )


def dense_of(value: Any, dtype: np.dtype[Any] | None = None) -> Any:
    """Return the dense array of an IndexedSlices; return any other value unchanged.

    Rows with the same index are added; rows without an index are zero.
    """
    if not isinstance(value, IndexedSlices):
        return value
    if value.dense_shape is None:
        raise ValueError(
            f"Tensor conversion requested for IndexedSlices without dense_shape: {shortened(value)}. Write "
            "IndexedSlices(values, indices, dense_shape)"
        )
    shape = tuple(map(int, value.dense_shape))
    indices, rows = checked_rows(value, shape, as_ndarray(value.values).dtype if dtype is None else dtype)
    dense = np.zeros(shape, rows.dtype)
    quietly(np.add.at, dense, indices, rows)
    return dense


def reduce_slices(op: ReduceOp, components: Sequence[Any]) -> IndexedSlices:
    """Concatenate the IndexedSlices of all replicas; MEAN divides every row by the number of replicas."""
    values = _joined([part.values for part in components], len(components) if op is ReduceOp.MEAN else None)
    indices = _joined([part.indices for part in components])
    return IndexedSlices(values, indices, getattr(components[0], "dense_shape", None))


def _joined(arrays: Sequence[Any], divisor: int | None = None) -> Any:
    common_kind(arrays)
    joined = np.concatenate([as_ndarray(array) for array in arrays])
    if divisor is not None:
        joined = np.divide(joined, joined.dtype.type(divisor))
    return in_kind_of(arrays[0], joined, is_own=True)


def checked_rows(
    slices: Any, shape: tuple[int, ...], dtype: np.dtype[Any], are_divisors: bool = False
) -> tuple[Array, Array]:
    """Return the validated indices and rows of a scatter; the rows have shape ``indices.shape + shape[1:]``.

    The values are one row for each index, or one number for all rows; divisors must not contain 0.
    """
    indices = checked_indices(slices.indices, shape)
    wanted = indices.shape + shape[1:]
    rows = np.asarray(as_value(slices.values, dtype, None, None), dtype)
    if not indices.size:
        return indices, np.empty(wanted, dtype)
    if rows.shape not in {wanted, ()}:
        raise InvalidArgumentError(
            f"{indices.size} indices into an array of shape {shape} need values of shape {wanted}, got {rows.shape}. "
            "Pass one row for each index, or one number for all"
        )
    if are_divisors and not rows.all():
        raise InvalidArgumentError("updates must not contain 0, because they are divisors; the variable is unchanged")
    return indices, np.broadcast_to(rows, wanted)


def _scatter(at: Callable[[Array, Array, Array], Any]) -> Callable[[Array, Any, Array], None]:
    """Return an update of an array by an IndexedSlices, which calls `at(array, indices, rows)`."""

    def change(old: Array, slices: Any, new: Array) -> None:
        indices, rows = checked_rows(slices, old.shape, old.dtype, at is _divide_at)
        if not np.may_share_memory(old, new):
            new[...] = old
        quietly(at, new, indices, rows)

    return change


def as_integers(indices: Any) -> Array:
    """Convert indices to an array of integers; raise TypeError unless they are integers."""
    array = as_ndarray(indices)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"indices must be integers, got an array of {array.dtype}: {shortened(indices)}")
    return array


def checked_indices(indices: Any, shape: tuple[int, ...]) -> Array:
    """Return validated row indices of an array."""
    array = as_integers(indices)
    if not shape:
        raise InvalidArgumentError(
            "row indices require at least one dimension, but the value is a scalar: read the value, or use assign"
        )
    if array.size and (array.min() < 0 or array.max() >= shape[0]):
        place = tuple(int(i) for i in np.argwhere((array < 0) | (array >= shape[0]))[0])
        raise InvalidArgumentError(
            f"indices{list(place)} = {array[place]} is not in [0, {shape[0]}): a variable of shape {shape} has "
            f"{shape[0]} rows, counted from 0"
        )
    return array


def update_at(array: Array, indices: Any, rows: Array) -> None:
    """Assign rows at indices: the counterpart of ``ufunc.at`` for assignment."""
    array[indices] = rows


def _divide_at(array: Array, indices: Array, rows: Array) -> None:
    if array.dtype.kind not in "iu":
        np.divide.at(array, indices, rows)
        return
    # Integer division truncates, as in C++. An index may repeat, so rows are applied in sequence.
    flat_rows, result = rows.reshape(-1, *array.shape[1:]), array.copy()
    for index, row in zip(indices.ravel(), flat_rows, strict=True):
        result[index] = (result[index] - np.fmod(result[index], row)) // row
    array[...] = result  # in one step, so that Ctrl-C cannot leave some rows divided


# Storage updates by method name.
SCATTERS = {
    "scatter_add": _scatter(np.add.at),
    "scatter_sub": _scatter(np.subtract.at),
    "scatter_mul": _scatter(np.multiply.at),
    "scatter_div": _scatter(_divide_at),
    "scatter_min": _scatter(np.minimum.at),
    "scatter_max": _scatter(np.maximum.at),
    "scatter_update": _scatter(update_at),
}
