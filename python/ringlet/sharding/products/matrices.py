"""Functions of matrices and vectors that are whole on a device: stacks of them are computed locally."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.layout.factors import FactorMap, broadcast_factors
from ringlet.sharding.layout.layout import Array
from ringlet.sharding.products.contraction import numpy_error, operand
from ringlet.sharding.sharded_array import ShardedArray

# Functions of a matrix that return one array; further arguments such as a tolerance may follow.
_OF_ONE = ("cholesky", "det", "eigvalsh", "inv", "matrix_rank", "pinv", "svdvals")


def of_each(function: Callable[..., Any], operands: Sequence[Any], cores: Sequence[int], **options: Any) -> Any:
    """Apply a NumPy function to stacks of vectors or matrices, the last `cores` dimensions of each operand.

    Return NotImplemented, which gathers the arrays, if the vectors or matrices themselves are divided.
    """
    if any(map(_is_cut, operands, cores)) or any(isinstance(value, ShardedArray) for value in options.values()):
        return NotImplemented
    stacks = [x.shape[: x.ndim - core] for x, core in zip(operands, cores, strict=True)]
    try:
        shape = np.broadcast_shapes(*stacks)
        # Empty stacks give the shape and dtype of the result.
        empty = [
            np.empty((0, *x.shape[len(stack) :]) if stack or n == 0 else x.shape, x.dtype)
            for n, (x, stack) in enumerate(zip(operands, stacks, strict=True))
        ]
        sample = np.asarray(function(*empty, **options))
    except (TypeError, ValueError):
        raise numpy_error(function, *operands, **options) from None

    def kernel(tiles: list[Any], out: Array, where: TileBoxes) -> None:
        out[...] = function(*tiles, **options)

    labels, result = broadcast_factors(stacks)
    rule = FactorMap(
        tuple((*given, *(None,) * core) for given, core in zip(labels, cores, strict=True)),
        (*result, *(None,) * (sample.ndim - 1)),
    )
    return apply(function.__name__, rule, kernel, operands, sample.dtype, shape=(*shape, *sample.shape[1:]))


def _is_cut(x: Any, core: int) -> bool:
    return x.ndim < core or (
        isinstance(x, ShardedArray) and any(cut.count > 1 for cut in x._layout.cuts[x.ndim - core :])
    )


def _implement(function: Callable[..., Any]) -> None:
    @implements(function)
    def of_one(*args: Any, **options: Any) -> Any:
        return of_each(function, [operand(args[0])], [2], **options) if len(args) == 1 else NotImplemented


for _name in _OF_ONE:
    if hasattr(np.linalg, _name):  # svdvals was added in NumPy 2.0
        _implement(getattr(np.linalg, _name))


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """Solve systems of equations; stacks of right-hand sides are matrices."""
    a, b = operand(a), operand(b)
    if b.ndim != 1 and b.ndim < a.ndim:  # versions of NumPy differ in whether these are vectors
        return NotImplemented
    return of_each(np.linalg.solve, [a, b], [2, min(2, b.ndim)])


@implements(np.cross)
def cross(a: Any, b: Any, *axes: Any, **options: Any) -> Any:
    """Return cross products of vectors along the last dimensions; other axes use gathered arrays."""
    a, b = operand(a), operand(b)
    if axes or options or not a.ndim or not b.ndim or {a.shape[-1], b.shape[-1]} != {3}:
        return NotImplemented
    return of_each(np.cross, [a, b], [1, 1])


@implements("linalg.cross")
def _cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return cross(x1, x2) if axis == -1 else NotImplemented


@implements(np.diag)
def diag(v: Any, k: Any = 0) -> Any:
    """Return the diagonal of a matrix, or the matrix with a diagonal."""
    x = operand(v)
    if x.ndim == 2:
        return np.diagonal(x, k)
    if x.ndim != 1:
        raise numpy_error(np.diag, x, k)
    if k != 0:
        return NotImplemented

    def kernel(tiles: list[Any], out: Array, where: TileBoxes) -> None:
        out[...] = 0
        rows = where.result[0]
        out[np.arange(len(out)), np.arange(rows.start, rows.stop)] = tiles[0]

    rule = FactorMap((("i",),), ("i", None), linear=(frozenset({0}),))
    return apply("diag", rule, kernel, [x], x.dtype, shape=(x.size, x.size))


@implements(np.diagflat)
def _diagflat(v: Any, k: Any = 0) -> Any:
    return diag(np.ravel(operand(v)), k)
