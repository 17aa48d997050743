"""Histograms and counts of integers: each device counts its elements, and the counts are added."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ringlet.collectives import Op
from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.layout.factors import FactorMap, Labels
from ringlet.sharding.layout.layout import Array, Shape
from ringlet.sharding.ops.elementwise import operand
from ringlet.sharding.resharding.pencils import all_gathered


def _counted(  # noqa: PLR0917
    name: str, function: Callable[..., Any], operands: Sequence[Any], labels: Sequence[Labels], shape: Shape, dtype: Any
) -> Any:
    """Add the counts that a function returns for the tiles of its operands."""

    def kernel(tiles: list[Array], out: Array, _: TileBoxes) -> None:
        out[...] = function(*tiles)

    reduced = dict.fromkeys([label for each in labels for label in each if label is not None], Op.SUM)
    rule = FactorMap(tuple(labels), (None,) * len(shape), reduced)
    return apply(name, rule, kernel, operands, dtype, shape=shape)


@implements(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """Implement :func:`numpy.bincount`."""
    x, minlength = operand(x), 0 if minlength is None else operator.index(minlength)
    np.bincount(np.zeros((0,) * x.ndim, x.dtype), None, minlength)  # raises NumPy's error for invalid arguments
    if x.size and int(np.min(x)) < 0:
        np.bincount([-1])
    length = max(minlength, int(np.max(x)) + 1 if x.size else 0)
    operands = [x] if weights is None else [x, operand(weights)]
    if any(np.shape(each) != x.shape for each in operands):
        raise ValueError("The weights and list don't have the same length.")
    labels = [("i",)] * len(operands)
    dtype = np.intp if weights is None else np.float64
    return _counted("bincount", partial(np.bincount, minlength=length), operands, labels, (length,), dtype)


@implements(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Implement :func:`numpy.histogram`."""
    x = operand(a)
    if x.dtype.kind not in "biuf" or (weights is not None and np.shape(weights) != x.shape):
        return NotImplemented
    x = x.astype(np.uint8) if x.dtype == bool else x
    edges = all_gathered(np.histogram_bin_edges(x, all_gathered(bins), range, weights))
    operands = [x] if weights is None else [x, operand(weights)]

    def count(tile: Array, weights: Array | None = None) -> Array:
        counts: Array = np.histogram(tile, edges, weights=weights)[0]
        return counts

    dtype = count(*(np.empty(0, each.dtype) for each in operands)).dtype
    labels = [tuple(d for d, _ in enumerate(x.shape))] * len(operands)
    found = _counted("histogram", count, operands, labels, (len(edges) - 1,), dtype)
    return (found / np.diff(edges) / np.sum(found) if density else found), edges
