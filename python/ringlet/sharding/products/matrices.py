"""Linear algebra, cross products and diagonal matrices; each device computes its matrices of a stack."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.tile_execution import apply, compute, prepare, tile_of
from ringlet.sharding.layout.factors import FactorMap, broadcast_factors
from ringlet.sharding.layout.layout import WHOLE, Array
from ringlet.sharding.products.contraction import numpy_error, operand
from ringlet.sharding.products.factorizations import DIVIDED, least_squares, solve_by_blocks
from ringlet.sharding.resharding.device_buffers import empty as empty_array
from ringlet.sharding.resharding.pencils import with_whole_axes
from ringlet.sharding.sharded_array import ShardedArray

# Functions of a matrix; further arguments such as a tolerance may follow.
_OF_ONE = ("cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "qr", "slogdet", "svd", "svdvals")


def of_each(function: Callable[..., Any], operands: Sequence[Any], cores: Sequence[int], **options: Any) -> Any:
    """Apply a NumPy function to stacks of vectors or matrices; `cores` has their numbers of dimensions, 1 or 2.

    If vectors or matrices are divided, the tiles move to dimensions of the stack. If an operand is one divided vector
    or matrix, or an option is sharded, return NotImplemented, which gathers the arrays.
    """
    if any(x.ndim < core for x, core in zip(operands, cores, strict=True)):
        raise numpy_error(function, *operands, **options)
    if any(isinstance(value, ShardedArray) for value in options.values()):
        return NotImplemented
    if any(_is_cut(x, core) and x.ndim == core for x, core in zip(operands, cores, strict=True)):
        return NotImplemented
    operands = [
        with_whole_axes(x, range(x.ndim - core, x.ndim)) if isinstance(x, ShardedArray) else x
        for x, core in zip(operands, cores, strict=True)
    ]
    stacks = [x.shape[: x.ndim - core] for x, core in zip(operands, cores, strict=True)]
    try:
        shape = np.broadcast_shapes(*stacks)
        # Empty stacks give the shape and dtype of the result.
        empty = [
            np.empty((0, *x.shape[len(stack) :]) if stack or n == 0 else x.shape, x.dtype)
            for n, (x, stack) in enumerate(zip(operands, stacks, strict=True))
        ]
        found = function(*empty, **options)
    except (TypeError, ValueError):
        raise numpy_error(function, *operands, **options) from None
    samples = [np.asarray(each) for each in (found if isinstance(found, tuple) else (found,))]
    labels, result = broadcast_factors(stacks)
    rules = [
        FactorMap(
            tuple((*given, *(None,) * core) for given, core in zip(labels, cores, strict=True)),
            (*result, *(None,) * (sample.ndim - 1)),
        )
        for sample in samples
    ]
    shapes = [(*shape, *sample.shape[1:]) for sample in samples]

    def kernel(tiles: list[Any], out: Array, where: TileBoxes) -> None:
        out[...] = function(*tiles, **options)

    if not isinstance(found, tuple):
        return apply(function.__name__, rules[0], kernel, operands, samples[0].dtype, shape=shapes[0])
    prepared = prepare(function.__name__, rules[0], operands, samples[0].dtype, shape=shapes[0])
    cuts = prepared.plan.result_layout.cuts[: len(shape)]
    results = [
        empty_array(
            each,
            sample.dtype,
            prepared.plan.result_layout.with_cuts(cuts + (WHOLE,) * (sample.ndim - 1)),
            prepared.group,
        )
        for each, sample in zip(shapes, samples, strict=True)
    ]

    def fill(_: Array, where: TileBoxes) -> None:
        tiles = [tile_of(x, box, where.device) for x, box in zip(prepared.operands, where.operands, strict=True)]
        for made, values in zip(results, function(*tiles, **options), strict=True):
            box = where.result[: len(shape)] + (slice(None),) * (made.ndim - len(shape))
            tile_of(made, box, where.device)[...] = values

    compute(results[0], fill, prepared, 8.0)
    return type(found)(*results) if hasattr(found, "_fields") else tuple(results)


def _is_cut(x: Any, core: int) -> bool:
    return isinstance(x, ShardedArray) and any(cut.count > 1 for cut in x._layout.cuts[x.ndim - core :])


def _implement(function: Callable[..., Any]) -> None:
    signature = inspect.signature(function)

    @implements(function)
    def of_one(*args: Any, **options: Any) -> Any:
        bound = signature.bind(*args, **options).arguments
        x = operand(bound.pop(next(iter(signature.parameters))))
        divided = DIVIDED.get(function.__name__)
        if divided is not None and x.ndim == 2 and _is_cut(x, 2):
            return divided(x, **bound)
        return of_each(function, [x], [2], **bound)


for _name in _OF_ONE:
    if hasattr(np.linalg, _name):  # svdvals was added in NumPy 2.0
        _implement(getattr(np.linalg, _name))


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """Solve systems of linear equations; `b` is a vector, a matrix or a stack of matrices."""
    a, b = operand(a), operand(b)
    if b.ndim != 1 and b.ndim < a.ndim:  # `b` is a stack of vectors or matrices, depending on NumPy's version
        return NotImplemented
    if a.ndim == 2 and b.ndim <= 2 and (_is_cut(a, 2) or _is_cut(b, b.ndim)):
        if a.shape[0] != a.shape[1] or a.shape[0] != b.shape[0]:
            raise numpy_error(np.linalg.solve, a, b)
        return solve_by_blocks(a, b)
    return of_each(np.linalg.solve, [a, b], [2, min(2, b.ndim)])


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Solve a least-squares problem with a tall sharded matrix; return NotImplemented for other arguments."""
    a, b = operand(a), operand(b)
    if a.ndim != 2 or a.shape[0] < a.shape[1] or b.ndim not in (1, 2) or len(a) != len(b) or rcond == "warn":
        return NotImplemented
    if not isinstance(a, ShardedArray):
        return NotImplemented
    return least_squares(a, b, rcond)


@implements(np.cross, "linalg.cross")
def cross(a: Any, b: Any, *axes: Any, **options: Any) -> Any:
    """Return cross products of 3-element vectors; NotImplemented for others, and for axes other than ``axis=``."""
    a, b = operand(a), operand(b)
    if not axes and options.keys() == {"axis"} and a.ndim and b.ndim:
        axis = options["axis"]
        return np.moveaxis(np.cross(np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1)), -1, axis)
    if axes or options or not a.ndim or not b.ndim or {a.shape[-1], b.shape[-1]} != {3}:
        return NotImplemented
    return of_each(np.cross, [a, b], [1, 1])


@implements(np.diag)
def diag(v: Any, k: Any = 0) -> Any:
    """Return the diagonal of a matrix, or a matrix with the given diagonal."""
    x = operand(v)
    if x.ndim == 2:
        return np.diagonal(x, k)
    if x.ndim != 1:
        raise numpy_error(np.diag, x, k)
    if k != 0:
        return np.pad(np.diag(x), ((max(-k, 0), max(k, 0)), (max(k, 0), max(-k, 0))))

    def kernel(tiles: list[Any], out: Array, where: TileBoxes) -> None:
        out[...] = 0
        rows = where.result[0]
        out[np.arange(len(out)), np.arange(rows.start, rows.stop)] = tiles[0]

    rule = FactorMap((("i",),), ("i", None), linear=(frozenset({0}),))
    return apply("diag", rule, kernel, [x], x.dtype, shape=(x.size, x.size))


@implements(np.diagflat)
def _diagflat(v: Any, k: Any = 0) -> Any:
    return diag(np.ravel(operand(v)), k)
