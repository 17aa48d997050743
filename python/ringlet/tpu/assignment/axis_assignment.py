"""Assignment of the axes of a logical mesh to the physical axes of the chips.

An *axis assignment* is a matrix with a row per physical axis and a column per logical axis. The product over a row is
the length of the physical axis, and the product over a column is the length of the logical axis. An entry is the factor
of the physical axis that the logical axis uses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

AxisMatrix = np.ndarray[Any, np.dtype[np.int64]]


def assign_axes(physical_shape: Sequence[int], mesh_shape: Sequence[int], *, allow_split: bool = False) -> AxisMatrix:
    """Return the axis assignment [physical axis, logical axis]; the last (busiest) logical axis is assigned first.

    A logical axis uses as many whole physical axes as possible, whose product is its length. If this fails for an axis
    and splitting is allowed, physical axes are split for all logical axes. Choices and the NotImplementedError are as
    in jax-ml/jax, ``jax/_src/mesh_utils.py``.
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
                f"mesh {left}. From the last to the first, each length of mesh_shape {tuple(mesh_shape)} must be a "
                f"product of unused lengths of {tuple(physical_shape)}; or set allow_split_physical_axes=True."
            )
        for axis in taken or ():
            matrix[axis, logical] = physical_shape[axis]
            free.discard(axis)
    return matrix


def _whole_axes(physical_shape: Sequence[int], free: set[int], size: int) -> tuple[int, ...] | None:
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
            # Factors of axes that are already split rank higher: JAX's code does this, although its comment states
            # the opposite.
            shared = [part for part, others in zip(parts, used, strict=True) if others > 1]
            return math.prod(whole), sum(part > 1 for part in whole), math.prod(shared), parts

        best = max(_factorings(mesh_shape[logical], left), key=merit, default=None)
        if best is None:
            raise NotImplementedError(
                f"mesh_shape {tuple(mesh_shape)} does not fit a physical mesh of shape {tuple(physical_shape)}: length "
                f"{mesh_shape[logical]} of logical axis {logical} is not a product of divisors of {left}, the lengths "
                "that remain of the physical axes. Choose lengths that are such products."
            )
        matrix[:, logical] = best
    return matrix


def _factorings(size: int, lengths: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield every factorization of `size` whose factors divide the corresponding `lengths`."""
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
    """Rearrange an array [physical axes..., item] into a logical mesh [logical axes..., item].

    If logical axes share a physical axis, positions vary fastest along the last of these logical axes.
    """
    rows, columns = matrix.shape
    parts = physical.reshape(*matrix.ravel().tolist(), physical.shape[-1])
    order = [row * columns + column for column in range(columns) for row in range(rows)]
    mesh: np.ndarray[Any, np.dtype[Any]] = parts.transpose(*order, rows * columns)
    return mesh.reshape(*mesh_shape, physical.shape[-1])
