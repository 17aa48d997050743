"""Reads and changes of single elements, or of parts of a variable, by tuples of indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives.buffers import as_ndarray
from ringlet.errors import InvalidArgumentError
from ringlet.values.indexed_slices import SCATTERS, IndexedSlices, as_slices
from ringlet.values.value_conversion import as_value
from ringlet.values.variables.row_lookup import RowReader, gather_rows
from ringlet.values.variables.storage import Change, quietly

__all__ = ["ALL_SCATTERS", "ND_SCATTERS", "ScatterNdUpdates", "checked_tuples", "rows_of"]

Array = NDArray[Any]


def checked_tuples(indices: Any, shape: tuple[int, ...]) -> Array:
    """Read tuples of indices into an array.

    Parameters
    ----------
    indices : array-like of int, shape (..., depth)
        Each tuple indexes the first `depth` dimensions.
    shape : tuple of int
        Of the array.

    Returns
    -------
    ndarray of int

    Raises
    ------
    InvalidArgumentError
        If a tuple is longer than `shape`, or names no place in it.
    TypeError
        If the indices are not integers.

    Examples
    --------
    >>> checked_tuples([[0, 1], [1, 0]], (2, 2)).tolist()
    [[0, 1], [1, 0]]
    """
    array = as_ndarray(indices)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"indices are integers, got an array of {array.dtype}: {indices!r}")
    if not array.ndim:
        raise InvalidArgumentError(f"indices must be at least a vector, got {indices!r}: write [[i]] or [[i, j]]")
    depth = array.shape[-1]
    if depth > len(shape):
        raise InvalidArgumentError(
            f"index innermost dimension length must be <= params rank; saw: {depth} vs. {len(shape)}. The variable has "
            f"the shape {shape}: give at most {len(shape)} indices in each tuple"
        )
    is_outside = ((array < 0) | (array >= np.array(shape[:depth], np.int64))).any(-1)
    if is_outside.any():
        place = tuple(int(i) for i in np.argwhere(is_outside)[0])
        raise InvalidArgumentError(
            f"indices{list(place)} = {array[place].tolist()} does not index into shape {shape}: indices count from 0"
        )
    return array


def _columns(tuples: Array) -> tuple[Array, ...]:
    """What NumPy indexes with: an array for each dimension."""
    return tuple(np.moveaxis(tuples, -1, 0))


def _in_batches(slices: IndexedSlices) -> IndexedSlices:
    """Tuples of indices for the last dimension of the indices of a batch."""
    last = as_ndarray(slices.indices)
    ahead = np.indices(last.shape)[:-1] if last.ndim else ()
    return IndexedSlices(slices.values, np.stack([*ahead, last], -1))


def _nd_scatter(name: str) -> Change:
    at = {"update": _update_at, "add": np.add.at, "sub": np.subtract.at, "min": np.minimum.at, "max": np.maximum.at}[
        name
    ]

    def change(old: Array, slices: Any, new: Array) -> None:
        tuples = checked_tuples(slices.indices, old.shape)
        depth = tuples.shape[-1]
        if not depth:
            raise InvalidArgumentError(
                f"indices of shape {tuples.shape} index no dimension of the variable: use assign for all of it"
            )
        wanted = tuples.shape[:-1] + old.shape[depth:]
        updates = np.asarray(as_value(slices.values, old.dtype, None, None), old.dtype)
        if updates.shape != wanted:
            raise InvalidArgumentError(
                f"indices of shape {tuples.shape} into a variable of shape {old.shape} need updates of shape {wanted}, "
                f"got {updates.shape}: the first dimensions must match those of the indices, the others those of the "
                "variable"
            )
        if not np.may_share_memory(old, new):
            new[...] = old
        quietly(at, new, _columns(tuples), updates)

    return change


def _update_at(array: Array, indices: tuple[Array, ...], updates: Array) -> None:
    array[indices] = updates


# Name of a scatter: the change that it makes of an IndexedSlices, whose indices are tuples.
ND_SCATTERS = {f"scatter_nd_{name}": _nd_scatter(name) for name in ("add", "sub", "update", "min", "max")}
ALL_SCATTERS = SCATTERS | ND_SCATTERS
_ROW_CHANGES = {
    ND_SCATTERS[f"scatter_nd_{name}"]: SCATTERS[f"scatter_{name}"] for name in ("add", "sub", "update", "min", "max")
}


def rows_of(change: Change, slices: IndexedSlices, shape: tuple[int, ...]) -> tuple[Change, IndexedSlices]:
    """Return the change of whole rows that a scatter by tuples is; any other change as it is.

    Raises
    ------
    NotImplementedError
        If the tuples index more than rows.

    Examples
    --------
    >>> change, slices = rows_of(ND_SCATTERS["scatter_nd_add"], IndexedSlices([5.0], [[2]]), (3,))
    >>> change is SCATTERS["scatter_add"], slices
    (True, IndexedSlices(values=[5.0], indices=array([2])))
    """
    if change not in _ROW_CHANGES:
        return change, slices
    tuples = checked_tuples(slices.indices, shape)
    if tuples.shape[-1] != 1:
        raise NotImplementedError(
            f"tuples of {tuples.shape[-1]} indices into a variable on parameter servers, which is written by the row: "
            "give tuples of one index, [[row], ...], and updates of whole rows"
        )
    return _ROW_CHANGES[change], IndexedSlices(slices.values, tuples[..., 0])


class ScatterNdUpdates:
    """Methods that read and change what tuples of indices name.

    Examples
    --------
    >>> import ringlet
    >>> v = ringlet.Variable([[1.0, 2.0], [3.0, 4.0]])
    >>> v.scatter_nd_add([[0, 1], [1, 0]], [10.0, 20.0]).numpy().tolist()
    [[1.0, 12.0], [23.0, 4.0]]
    >>> v.gather_nd([[1]])
    array([[23.,  4.]])
    """

    __slots__ = ()

    shape: Any

    def _scatter(self, name: str, sparse_delta: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say how its elements are changed")

    def _as_operand(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say what it stands for")

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Add to the places that tuples of indices name.

        Parameters
        ----------
        indices : array-like of int, shape (..., depth)
            Each tuple indexes the first `depth` dimensions; one may occur more than once.
        updates : array-like, shape ``indices.shape[:-1] + shape[depth:]``
        name : str, optional
            Accepted as TensorFlow accepts it.

        Returns
        -------
        Variable or ndarray
            What :meth:`scatter_add` returns.

        Raises
        ------
        InvalidArgumentError
            If there is no such place, or the updates have another shape; nothing is written.
        NotImplementedError
            If the variable has a component for each replica.
        """
        return self._scatter("scatter_nd_add", IndexedSlices(updates, indices))

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtract from the places that tuples of indices name; otherwise as :meth:`scatter_nd_add`."""
        return self._scatter("scatter_nd_sub", IndexedSlices(updates, indices))

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Write to the places that tuples of indices name; otherwise as :meth:`scatter_nd_add`."""
        return self._scatter("scatter_nd_update", IndexedSlices(updates, indices))

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Put the lesser of both in the places that tuples of indices name; otherwise as :meth:`scatter_nd_add`."""
        return self._scatter("scatter_nd_min", IndexedSlices(updates, indices))

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Put the greater of both in the places that tuples of indices name; otherwise as :meth:`scatter_nd_add`."""
        return self._scatter("scatter_nd_max", IndexedSlices(updates, indices))

    def batch_scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Write to rows of each element of a batch: ``variable[i, indices[i, j]] = values[i, j]``.

        Parameters
        ----------
        sparse_delta : IndexedSlices
            Its indices have the leading dimensions of the variable, and one for the rows.
        use_locking, name
            Accepted as TensorFlow accepts them; nothing depends on them.

        Returns
        -------
        Variable or ndarray
            What :meth:`scatter_update` returns.

        Raises
        ------
        TypeError
            If it is not an IndexedSlices.
        InvalidArgumentError
            If there is no such row, or the values have another shape; nothing is written.
        """
        return self._scatter("scatter_nd_update", _in_batches(as_slices(sparse_delta)))

    def gather_nd(self, indices: Any, name: str | None = None) -> Any:
        """Read what tuples of indices name.

        Parameters
        ----------
        indices : array-like of int, shape (..., depth)
            Each tuple indexes the first `depth` dimensions.
        name : str, optional
            Accepted as TensorFlow accepts it.

        Returns
        -------
        ndarray, shape ``indices.shape[:-1] + shape[depth:]``

        Raises
        ------
        InvalidArgumentError
            If there is no such place.
        """
        tuples = checked_tuples(indices, self.shape)
        if not tuples.shape[-1]:
            return np.broadcast_to(self._as_operand(), tuples.shape[:-1] + tuple(self.shape))
        columns = _columns(tuples)
        if isinstance(self, RowReader) and len(columns) == 1:
            return gather_rows(self, columns[0])
        return self._as_operand()[columns]
