"""Validation of core coordinates: integers, inside the mesh, distinct."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.errors import CoordinateError

IntArray = np.ndarray[Any, np.dtype[np.int32]]

# Maximum number of cells per occupied cell for which marking cells is faster than sorting.
_SPARSE = 16


def as_int32(name: str, values: Any) -> IntArray:
    """Convert an argument to a new array of int32; raise ValueError or TypeError with the argument's name."""
    try:
        given = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be an array of integers; its rows differ in length: {values!r}") from None
    if given.size == 0:
        return given.astype(np.int32)
    if given.dtype.kind not in "iub":
        _check_whole(name, given)
    if given.dtype not in (np.int32, np.int16, np.int8) and (int(given.min()) < -(2**31) or int(given.max()) >= 2**31):
        raise ValueError(f"{name} must be 32-bit integers; got {int(given.min())} to {int(given.max())}")
    return given.astype(np.int32)


def _check_whole(name: str, given: np.ndarray[Any, Any]) -> None:
    if given.dtype == object and all(isinstance(value, int) for value in given.flat):
        raise ValueError(f"{name} must be 32-bit integers; got {max(given.flat, key=abs)}")
    if given.dtype.kind != "f":
        raise TypeError(f"{name} must be an array of integers, not of {given.dtype}: got {given.flat[0]!r}.")
    wrong = given[~((given == np.trunc(given)) & np.isfinite(given))]
    if wrong.size:
        raise ValueError(f"{name} must be integers; got {wrong[0]}")


def cells_of(name: str, coordinates: IntArray, mesh_shape: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the row-major cell number of each core [group, member, axis]; raise CoordinateError outside the mesh."""
    flat: IntArray = coordinates.reshape(-1, len(mesh_shape))
    bounds = np.array(mesh_shape, np.int32)
    # Read as unsigned, negative numbers exceed all bounds.
    outside = flat.view(np.uint32) >= bounds.view(np.uint32)
    if outside.any():
        raise _outside(name, coordinates, bounds, outside)
    weights = np.array([math.prod(mesh_shape[axis + 1 :]) for axis in range(len(mesh_shape))], np.int64)
    cells: np.ndarray[Any, np.dtype[np.int64]] = flat.astype(np.int64) @ weights
    return cells


def _outside(
    name: str, coordinates: IntArray, bounds: IntArray, outside: np.ndarray[Any, np.dtype[np.bool_]]
) -> CoordinateError:
    row, axis = (int(index) for index in np.argwhere(outside)[0])
    group, member = divmod(row, coordinates.shape[1])
    found = tuple(coordinates[group, member].tolist())
    return CoordinateError(
        f"{name}[{group}, {member}] is {found}, which is outside of the mesh {bounds}: index {found[axis]} is out of "
        f"bounds for axis {axis} with size {bounds[axis]}. Coordinates are x, y, z and core, counted from 0."
    )


def first_repeated(cells: np.ndarray[Any, np.dtype[np.int64]], num_cells: int) -> tuple[int, int] | None:
    """Return the indices of two equal entries, or None if all are distinct; entries are below `num_cells`."""
    if num_cells <= _SPARSE * cells.size:
        seen = np.zeros(num_cells, np.bool_)
        seen[cells] = True
        if np.count_nonzero(seen) == cells.size:
            return None
    ordered = np.sort(cells)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if not twice.size:
        return None
    first, second = np.flatnonzero(cells == twice[0])[:2].tolist()
    return first, second
