"""IndexedSlices: some rows of an array, and how they are scattered into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives import ReduceOp
from ringlet.collectives.adapters.array_adapters import common_kind, in_kind_of, kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.errors import InvalidArgumentError
from ringlet.values.value_conversion import as_value
from ringlet.values.variables.storage import quietly

__all__ = ["SCATTERS", "IndexedSlices", "as_slices", "checked_indices", "checked_rows", "reduce_slices"]

Array = NDArray[Any]


class IndexedSlices:
    """Some rows of an array that is not there itself (``tf.IndexedSlices``), such as the gradient of a look-up.

    Parameters
    ----------
    values : array-like, shape (n, ...)
        The rows.
    indices : array-like of int, shape (n,)
        Where each row belongs. An index may occur more than once.
    dense_shape : sequence of int, optional
        Shape of the whole array.

    Examples
    --------
    >>> import ringlet
    >>> table = ringlet.Variable([1.0, 2.0, 3.0])
    >>> print(table.scatter_add(ringlet.IndexedSlices([10.0, 20.0], [2, 0])).read_value())
    [21.  2. 13.]
    """

    # No dataclass: those are structures, and replicas pass this on as one value.
    __slots__ = ("_dense_shape", "_indices", "_values")

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values, self._indices, self._dense_shape = values, indices, dense_shape

    @property
    def values(self) -> Any:
        """The rows."""
        return self._values

    @property
    def indices(self) -> Any:
        """Where each row belongs."""
        return self._indices

    @property
    def dense_shape(self) -> Any:
        """Shape of the whole array; None if it is not known."""
        return self._dense_shape

    def __repr__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape!r}"
        return f"IndexedSlices(values={self._values!r}, indices={self._indices!r}{shape})"


def as_slices(value: Any) -> IndexedSlices:
    """Give the IndexedSlices of a value that has ``indices`` and ``values``; one that is such is given as it is.

    Raises
    ------
    TypeError
        If it has not.

    Examples
    --------
    >>> as_slices(5)
    Traceback (most recent call last):
        ...
    TypeError: a scatter takes an IndexedSlices, got 5 of type int: write ringlet.IndexedSlices(values, indices)
    """
    if isinstance(value, IndexedSlices):
        return value
    if hasattr(value, "indices") and hasattr(value, "values") and kind_of(value) is None:
        return IndexedSlices(value.values, value.indices)
    raise TypeError(
        f"a scatter takes an IndexedSlices, got {value!r} of type {type(value).__name__}: write "
        "ringlet.IndexedSlices(values, indices)"
    )


def reduce_slices(op: ReduceOp, components: Sequence[Any]) -> IndexedSlices:
    """Combine the rows that several replicas give: all of them, one after the other.

    Parameters
    ----------
    op : ReduceOp
        MEAN divides every row by the number of replicas.
    components : sequence of IndexedSlices
        Those of the replicas, in their order.

    Returns
    -------
    IndexedSlices

    Examples
    --------
    >>> parts = [IndexedSlices(np.array([2.0]), [0]), IndexedSlices(np.array([4.0]), [1])]
    >>> reduce_slices(ReduceOp.MEAN, parts)
    IndexedSlices(values=array([1., 2.]), indices=array([0, 1]))
    """
    values = _joined([part.values for part in components], len(components) if op is ReduceOp.MEAN else None)
    indices = _joined([part.indices for part in components])
    return IndexedSlices(values, indices, getattr(components[0], "dense_shape", None))


def _joined(arrays: Sequence[Any], divisor: int | None = None) -> Any:
    """Arrays one behind the other; divided by a number if there is one."""
    common_kind(arrays)
    joined = np.concatenate([as_ndarray(array) for array in arrays])
    if divisor is not None:
        joined = np.divide(joined, joined.dtype.type(divisor))
    return in_kind_of(arrays[0], joined, is_own=True)


def checked_rows(
    slices: Any, shape: tuple[int, ...], dtype: np.dtype[Any], are_divisors: bool = False
) -> tuple[Array, Array]:
    """Read rows that are to be scattered into an array.

    Parameters
    ----------
    slices : IndexedSlices
        Its values have a row for each index, or are a number for all of them.
    shape, dtype
        Of the array.
    are_divisors : bool
        Whether the array is to be divided by them.

    Returns
    -------
    indices : ndarray of int
    rows : ndarray, shape ``indices.shape + shape[1:]``

    Raises
    ------
    InvalidArgumentError
        If there is no row of one of the indices, the rows do not fit, or the array would be divided by 0.
    TypeError
        If the indices are no integers.

    Examples
    --------
    >>> checked_rows(IndexedSlices([5.0, 6.0], [1, 0]), (3,), np.dtype(np.float64))
    (array([1, 0]), array([5., 6.]))
    """
    indices = checked_indices(slices.indices, shape)
    wanted = indices.shape + shape[1:]
    rows = np.asarray(as_value(slices.values, dtype, None, None), dtype)
    if not indices.size:
        return indices, np.empty(wanted, dtype)
    if rows.shape not in {wanted, ()}:
        raise InvalidArgumentError(
            f"{indices.size} indices into an array of shape {shape} need values of shape {wanted}, got {rows.shape}. "
            "Give one row for each index, or one number for all"
        )
    if are_divisors and not rows.all():
        raise InvalidArgumentError("updates must not contain 0: nothing is divided by it, and nothing was written")
    return indices, np.broadcast_to(rows, wanted)


def _scatter(at: Callable[[Array, Array, Array], Any]) -> Callable[[Array, Any, Array], None]:
    """A change of a storage that makes `at(array, indices, rows)` of an IndexedSlices."""

    def change(old: Array, slices: Any, new: Array) -> None:
        indices, rows = checked_rows(slices, old.shape, old.dtype, at is _divide_at)
        if not np.may_share_memory(old, new):
            new[...] = old
        quietly(at, new, indices, rows)

    return change


def checked_indices(indices: Any, shape: tuple[int, ...]) -> Array:
    """Read the indices of rows of an array.

    Parameters
    ----------
    indices : array-like of int
    shape : tuple of int
        Of the array.

    Returns
    -------
    ndarray of int

    Raises
    ------
    InvalidArgumentError
        If the array has no dimension, or no row of one of them.
    TypeError
        If they are no integers.

    Examples
    --------
    >>> checked_indices([2, 0], (3,))
    array([2, 0])
    """
    array = as_ndarray(indices)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"indices are integers, got an array of {array.dtype}: {indices!r}")
    if not shape:
        raise InvalidArgumentError("a scatter writes rows, and this variable has no dimension: use assign")
    if array.size and (array.min() < 0 or array.max() >= shape[0]):
        place = tuple(int(i) for i in np.argwhere((array < 0) | (array >= shape[0]))[0])
        raise InvalidArgumentError(
            f"indices{list(place)} = {array[place]} is not in [0, {shape[0]}): a variable of shape {shape} has "
            f"{shape[0]} rows, counted from 0"
        )
    return array


def _divide_at(array: Array, indices: Array, rows: Array) -> None:
    if array.dtype.kind not in "iu":
        np.divide.at(array, indices, rows)
        return
    # Integers are cut towards zero, as C++ does; a row may come more than once, so one after the other.
    flat_rows, result = rows.reshape(-1, *array.shape[1:]), array.copy()
    for index, row in zip(indices.ravel(), flat_rows, strict=True):
        result[index] = (result[index] - np.fmod(result[index], row)) // row
    array[...] = result  # at once, or Ctrl-C would leave some rows divided


def _update_at(array: Array, indices: Array, rows: Array) -> None:
    array[indices] = rows


# Name of a scatter: the change that it makes.
SCATTERS = {
    "scatter_add": _scatter(np.add.at),
    "scatter_sub": _scatter(np.subtract.at),
    "scatter_mul": _scatter(np.multiply.at),
    "scatter_div": _scatter(_divide_at),
    "scatter_min": _scatter(np.minimum.at),
    "scatter_max": _scatter(np.maximum.at),
    "scatter_update": _scatter(_update_at),
}
