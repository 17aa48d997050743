"""Reads and updates of variables by index tuples (``gather_nd``, ``scatter_nd_*``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives.argument_parsing import shortened
from ringlet.collectives.buffers import as_ndarray
from ringlet.errors import InvalidArgumentError
from ringlet.values.indexed_slices import SCATTERS, IndexedSlices, as_integers, as_slices, update_at
from ringlet.values.value_conversion import as_value
from ringlet.values.variables.row_lookup import RowReader, gather_rows
from ringlet.values.variables.scatter_updates import ScatterUpdates
from ringlet.values.variables.storage import Change, quietly

Array = NDArray[Any]


def checked_tuples(indices: Any, shape: tuple[int, ...]) -> Array:
    """Return validated index tuples, of shape (..., depth), into the first `depth` dimensions of an array."""
    array = as_integers(indices)
    if not array.ndim:
        raise InvalidArgumentError(
            f"indices must be at least a vector, got {shortened(indices)}: write [[i]] or [[i, j]]"
        )
    depth = array.shape[-1]
    if depth > len(shape):
        raise InvalidArgumentError(
            f"index innermost dimension length must be <= params rank; saw: {depth} vs. {len(shape)}. The variable "
            f"has shape {shape}: pass at most {len(shape)} indices in each tuple"
        )
    is_outside = ((array < 0) | (array >= np.array(shape[:depth], np.int64))).any(-1)
    if is_outside.any():
        place = tuple(int(i) for i in np.argwhere(is_outside)[0])
        raise InvalidArgumentError(
            f"indices{list(place)} = {array[place].tolist()} does not index into shape {shape}: indices count from 0"
        )
    return array


def _columns(tuples: Array) -> tuple[Array, ...]:
    """Return a NumPy index: an array for each dimension."""
    return tuple(np.moveaxis(tuples, -1, 0))


def _in_batches(slices: IndexedSlices) -> IndexedSlices:
    """Convert the row numbers of each batch element to index tuples."""
    last = as_ndarray(slices.indices)
    ahead = np.indices(last.shape)[:-1] if last.ndim else ()
    return IndexedSlices(slices.values, np.stack([*ahead, last], -1))


def _nd_scatter(at: Callable[..., Any]) -> Change:
    def change(old: Array, slices: Any, new: Array) -> None:
        tuples = checked_tuples(slices.indices, old.shape)
        depth = tuples.shape[-1]
        if not depth:
            raise InvalidArgumentError(
                f"indices of shape {tuples.shape} index no dimension of the variable: use assign to replace the whole "
                "value"
            )
        wanted = tuples.shape[:-1] + old.shape[depth:]
        updates = np.asarray(as_value(slices.values, old.dtype, None, None), old.dtype)
        if updates.shape != wanted:
            raise InvalidArgumentError(
                f"indices of shape {tuples.shape} into a variable of shape {old.shape} need updates of shape {wanted}, "
                f"got {updates.shape}: the first dimensions must match the indices, the other dimensions the variable"
            )
        if not np.may_share_memory(old, new):
            new[...] = old
        quietly(at, new, _columns(tuples), updates)

    return change


# Storage updates by method name; the indices of the IndexedSlices are tuples.
_AT = {"add": np.add.at, "sub": np.subtract.at, "update": update_at, "min": np.minimum.at, "max": np.maximum.at}
ND_SCATTERS = {f"scatter_nd_{name}": _nd_scatter(at) for name, at in _AT.items()}
ALL_SCATTERS = SCATTERS | ND_SCATTERS
_ROW_CHANGES = {ND_SCATTERS[f"scatter_nd_{name}"]: SCATTERS[f"scatter_{name}"] for name in _AT}


def rows_of(change: Change, slices: IndexedSlices, shape: tuple[int, ...]) -> tuple[Change, IndexedSlices]:
    """Convert a scatter by 1-tuples to a scatter of rows; longer tuples raise an error, other updates are unchanged."""
    if change not in _ROW_CHANGES:
        return change, slices
    tuples = checked_tuples(slices.indices, shape)
    if tuples.shape[-1] != 1:
        raise NotImplementedError(
            f"variables on parameter servers are updated by row, got tuples of {tuples.shape[-1]} indices: "
            "pass tuples of one index, [[row], ...], and updates of whole rows"
        )
    return _ROW_CHANGES[change], IndexedSlices(slices.values, tuples[..., 0])


class ScatterNdUpdates(ScatterUpdates):
    """Mixin of variables: reads and updates by index tuples.

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

    def _as_operand(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define _as_operand()")

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Add to the elements or slices at index tuples.

        Parameters
        ----------
        indices : array-like of int, shape (..., depth)
            Each tuple indexes the first `depth` dimensions; a tuple may occur more than once.
        updates : array-like, shape ``indices.shape[:-1] + shape[depth:]``
        name : str, unused

        Returns
        -------
        Variable or ndarray
            As for :meth:`scatter_add`.

        Raises
        ------
        InvalidArgumentError
            If a tuple is out of range, or the updates do not fit; the variable is unchanged.
        NotImplementedError
            If the variable has a component for each replica, or is on a parameter server and `depth` is not 1.
        """
        return self._scatter("scatter_nd_add", IndexedSlices(updates, indices))

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtract from the elements or slices at index tuples; see :meth:`scatter_nd_add`."""
        return self._scatter("scatter_nd_sub", IndexedSlices(updates, indices))

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replace the elements or slices at index tuples; see :meth:`scatter_nd_add`."""
        return self._scatter("scatter_nd_update", IndexedSlices(updates, indices))

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replace the elements or slices at index tuples by their minimum with updates; see :meth:`scatter_nd_add`."""
        return self._scatter("scatter_nd_min", IndexedSlices(updates, indices))

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replace the elements or slices at index tuples by their maximum with updates; see :meth:`scatter_nd_add`."""
        return self._scatter("scatter_nd_max", IndexedSlices(updates, indices))

    def batch_scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace rows within each batch element: ``variable[i, indices[i, j]] = values[i, j]``.

        Parameters
        ----------
        sparse_delta : IndexedSlices
            Its indices have the batch dimensions of the variable, and one dimension for rows.
        use_locking, name
            Ignored; for compatibility with TensorFlow.

        Returns
        -------
        Variable or ndarray
            As for :meth:`scatter_update`.

        Raises
        ------
        TypeError
            If `sparse_delta` is not an IndexedSlices.
        InvalidArgumentError
            If a row is out of range, or the values do not fit; the variable is unchanged.
        NotImplementedError
            As for :meth:`scatter_nd_add`.
        """
        return self._scatter("scatter_nd_update", _in_batches(as_slices(sparse_delta)))

    def gather_nd(self, indices: Any, name: str | None = None) -> Any:
        """Return the elements or slices at index tuples.

        Parameters
        ----------
        indices : array-like of int, shape (..., depth)
            Each tuple indexes the first `depth` dimensions.
        name : str, unused

        Returns
        -------
        ndarray, shape ``indices.shape[:-1] + shape[depth:]``

        Raises
        ------
        InvalidArgumentError
            If a tuple is out of range.
        """
        tuples = checked_tuples(indices, self.shape)
        if not tuples.shape[-1]:
            return np.broadcast_to(self._as_operand(), tuples.shape[:-1] + tuple(self.shape))
        columns = _columns(tuples)
        if isinstance(self, RowReader) and len(columns) == 1:
            return gather_rows(self, columns[0])
        return self._as_operand()[columns]
