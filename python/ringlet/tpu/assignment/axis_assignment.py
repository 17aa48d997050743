"""Which axes of a logical mesh run along which axes of the chips.

An *axis assignment* is a matrix with a row for each physical axis and a column for each logical one. The product over
a row is the length of the physical axis, the product over a column that of the logical one: an entry says how many
steps of the physical axis the logical axis takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

__all__ = ["assign_axes", "lay_out"]

AxisMatrix = np.ndarray[Any, np.dtype[np.int64]]


def assign_axes(physical_shape: Sequence[int], mesh_shape: Sequence[int], *, allow_split: bool = False) -> AxisMatrix:
    """Find physical axes for each logical axis, the one that talks most (the last) first.

    A logical axis takes whole physical axes, as many as possible, whose product is its length. Where that fails,
    physical axes are split, if that is allowed, for all logical axes.

    Parameters
    ----------
    physical_shape : sequence of int
    mesh_shape : sequence of int
        With the same product.
    allow_split : bool
        Whether several logical axes may share a physical one.

    Returns
    -------
    ndarray of int64, shape (physical axes, logical axes)

    Raises
    ------
    NotImplementedError
        If an axis finds none, as ``jax.experimental.mesh_utils`` raises it.

    References
    ----------
    jax-ml/jax, ``jax/_src/mesh_utils.py``: the same choices.

    Examples
    --------
    >>> assign_axes((4, 4, 8), (8, 16)).tolist()
    [[1, 4], [1, 4], [8, 1]]
    >>> assign_axes((4, 4, 4), (8, 8), allow_split=True).tolist()
    [[1, 4], [2, 2], [4, 1]]
    """
    matrix = np.ones((len(physical_shape), len(mesh_shape)), np.int64)
    free = set(range(len(physical_shape)))
    for logical in reversed(range(len(mesh_shape))):
        size = mesh_shape[logical]
        taken = _whole_axes(physical_shape, free, size)
        if taken is None and size > 1:
            if allow_split:
                return _split_axes(physical_shape, mesh_shape)
            left = [length if axis in free else 0 for axis, length in enumerate(physical_shape)]
            raise NotImplementedError(
                f"Failed to find assignment for logical_axis_index {logical} of size {size} with remaining assignable "
                f"mesh {left}. Each length of mesh_shape {tuple(mesh_shape)} must be a product of lengths of "
                f"{tuple(physical_shape)}, each of which is used once, the last ones first; or set "
                "allow_split_physical_axes=True."
            )
        for axis in taken or ():
            matrix[axis, logical] = physical_shape[axis]
            free.discard(axis)
    return matrix


def _whole_axes(physical_shape: Sequence[int], free: set[int], size: int) -> tuple[int, ...] | None:
    """The largest set of free axes whose product is `size`; the first of equally large ones."""
    for count in range(len(physical_shape), 0, -1):
        for axes in combinations(sorted(free), count):
            if math.prod(physical_shape[axis] for axis in axes) == size:
                return axes
    return None


def _split_axes(physical_shape: Sequence[int], mesh_shape: Sequence[int]) -> AxisMatrix:
    matrix = np.ones((len(physical_shape), len(mesh_shape)), np.int64)
    for logical in reversed(range(len(mesh_shape))):
        used = [int(part) for part in matrix.prod(1)]
        left = [length // part for length, part in zip(physical_shape, used, strict=True)]

        def merit(parts: tuple[int, ...], used: list[int] = used) -> tuple[object, ...]:
            whole = [part for part, length in zip(parts, physical_shape, strict=True) if part == length]
            # To take from axes that others have taken from counts in favour: JAX's code prefers it, though the comment
            # beside it wants the contrary.
            shared = [part for part, others in zip(parts, used, strict=True) if others > 1]
            return math.prod(whole), sum(part > 1 for part in whole), math.prod(shared), parts

        best = max(_factorings(mesh_shape[logical], left), key=merit, default=None)
        if best is None:
            raise NotImplementedError(
                f"mesh_shape {tuple(mesh_shape)} does not divide {tuple(physical_shape)} chips: what is left, {left}, "
                f"has no part of {mesh_shape[logical]} for logical axis {logical}."
            )
        matrix[:, logical] = best
    return matrix


def _factorings(size: int, lengths: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every way to write `size` as a product of one divisor of each length."""
    if not lengths:
        if size == 1:
            yield ()
        return
    for part in range(1, min(size, lengths[0]) + 1):
        if size % part == 0 and lengths[0] % part == 0:
            yield from ((part, *rest) for rest in _factorings(size // part, lengths[1:]))


def lay_out(
    physical: np.ndarray[Any, np.dtype[Any]], matrix: AxisMatrix, mesh_shape: Sequence[int]
) -> np.ndarray[Any, np.dtype[Any]]:
    """Arrange what sits on the physical axes as a logical mesh.

    Parameters
    ----------
    physical : ndarray, shape (..., items)
        One entry of `items` values for each place of the physical axes.
    matrix : ndarray, shape (physical axes, logical axes)
        An axis assignment. Where logical axes share a physical one the later of them has neighbouring places.
    mesh_shape : sequence of int

    Returns
    -------
    ndarray, shape (*mesh_shape, items)
    """
    rows, columns = matrix.shape
    parts = physical.reshape(*matrix.ravel().tolist(), physical.shape[-1])
    order = [row * columns + column for column in range(columns) for row in range(rows)]
    mesh: np.ndarray[Any, np.dtype[Any]] = parts.transpose(*order, rows * columns)
    return mesh.reshape(*mesh_shape, physical.shape[-1])
