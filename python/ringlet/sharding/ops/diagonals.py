"""Diagonals of sharded arrays, and their sums."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.layout.factors import EVERY_OP, Factor, FactorMap, Labels
from ringlet.sharding.layout.layout import Array
from ringlet.sharding.products.contraction import numpy_error, operand


def merged(x: Any, labels: Labels) -> tuple[Any, Labels]:
    """Return the diagonal over the dimensions with equal labels, and the distinct labels."""
    distinct = tuple(dict.fromkeys(labels))
    if len(distinct) == len(labels):
        return x, labels
    if isinstance(x, np.ndarray):
        return _diagonal(x, labels), distinct
    # The first dimension with a label keeps its tiling; each tile takes the same range of the other dimensions with
    # this label.
    places = {label: labels.index(label) for label in distinct}
    operand_labels = tuple(label if places[label] == d else None for d, label in enumerate(labels))

    def kernel(tiles: list[Any], out: Array, where: TileBoxes) -> None:
        box = where.operands[0]
        ranges = (slice(None) if places[label] == d else box[places[label]] for d, label in enumerate(labels))
        out[...] = _diagonal(tiles[0][tuple(ranges)], labels)

    rule = FactorMap((operand_labels,), distinct, linear=(frozenset({0}),), linear_ops=EVERY_OP)
    return apply("diagonal", rule, kernel, [x], x.dtype), distinct


def _diagonal(x: Array, labels: Labels) -> Array:
    distinct = tuple(dict.fromkeys(labels))
    strides = dict.fromkeys(distinct, 0)
    for label, stride in zip(labels, x.strides, strict=True):
        strides[label] += stride
    shape = tuple(x.shape[labels.index(label)] for label in distinct)
    return np.lib.stride_tricks.as_strided(x, shape, tuple(strides.values()), writeable=False)


@implements(np.diagonal)
def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    """Return the elements `offset` columns right of the diagonal, along a new last dimension."""
    a, shift = operand(a), operator.index(offset)
    first, second = _places(a, axis1, axis2, shift)
    starts = {first: max(0, -shift), second: max(0, shift)}
    length = max(0, min(a.shape[d] - start for d, start in starts.items()))
    a = a[tuple(slice(starts[d], starts[d] + length) if d in starts else slice(None) for d in range(a.ndim))]
    labels: list[Factor] = [*range(a.ndim)]
    labels[second] = first
    result, left = merged(a, tuple(labels))
    return np.moveaxis(result, left.index(first), -1)


@implements(np.trace)
def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, *dtype_and_out: Any, **named: Any) -> Any:
    """Sum along the diagonal; the arguments after the axes are the dtype and `out`."""
    return np.sum(diagonal(a, offset, axis1, axis2), -1, *dtype_and_out, **named)


@implements("linalg.diagonal")
def _diagonal_of_matrices(x: Any, /, *, offset: Any = 0) -> Any:
    return diagonal(x, offset, -2, -1)


@implements("linalg.trace")
def _trace_of_matrices(x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Any:
    return trace(x, offset, -2, -1, dtype)


def _places(a: Any, axis1: Any, axis2: Any, offset: int) -> tuple[int, int]:
    places = operator.index(axis1), operator.index(axis2)
    if a.ndim < 2 or any(not -a.ndim <= place < a.ndim for place in places) or (places[0] - places[1]) % a.ndim == 0:
        raise numpy_error(np.diagonal, a, offset, *places)
    return places[0] % a.ndim, places[1] % a.ndim
