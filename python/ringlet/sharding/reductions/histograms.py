"""Histograms and counts of integers: each device counts its elements, and the counts are added."""

from __future__ import annotations

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
from ringlet.sharding.resharding.pencils import everywhere
from ringlet.sharding.sharded_array import ShardedArray


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
    x, minlength = operand(x), 0 if minlength is None else int(minlength)
    np.bincount(np.zeros((0,) * x.ndim, x.dtype), None, minlength)  # raises NumPy's error
    if x.size and int(np.min(x)) < 0:
        np.bincount([-1])
    length = max(minlength, int(np.max(x)) + 1 if x.size else 0)
    operands = [x] if weights is None else [x, operand(weights)]
    if any(np.shape(each) != x.shape for each in operands):
        raise ValueError("The weights and list don't have the same length.")
    labels = [("i",)] * len(operands)
    dtype = np.intp if weights is None else np.float64
    return _counted("bincount", partial(np.bincount, minlength=length), operands, labels, (length,), dtype)


def _ends(x: Any, bins: Any, range: Any) -> Any:  # NumPy's name
    """Return the arguments with which a histogram of each tile has the bins of the whole array."""
    if np.ndim(bins) == 0 and range is None and x.size:
        range = (np.asarray(np.min(x)).item(), np.asarray(np.max(x)).item())
    return bins, range


@implements(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Implement :func:`numpy.histogram`; bins that a rule chooses gather the array."""
    x, bins = operand(a), everywhere(bins)
    if isinstance(bins, str) or x.dtype.kind not in "biuf" or (weights is not None and np.shape(weights) != x.shape):
        return NotImplemented
    x = x.astype(np.uint8) if x.dtype == bool else x
    bins, range = _ends(x, bins, range)
    operands = [x] if weights is None else [x, operand(weights)]
    empty = [np.empty(0, each.dtype) for each in operands]
    counts, edges = np.histogram(empty[0], bins, range, weights=empty[1] if weights is not None else None)
    if np.ndim(bins) == 0:
        edges = np.histogram_bin_edges(np.asarray(range or (0, 1), x.dtype), bins, range)

    def count(tile: Array, *weights: Array) -> Array:
        counts: Array = np.histogram(tile, bins, range, weights=weights[0] if weights else None)[0]
        return counts

    labels = [tuple(range_of(x.ndim))] * len(operands)
    found = _counted("histogram", count, operands, labels, counts.shape, counts.dtype)
    return (found / np.diff(edges) / np.sum(found) if density else found), edges


range_of = range


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Implement :func:`numpy.histogram_bin_edges`."""
    bins = everywhere(bins)
    if isinstance(bins, str):
        return NotImplemented
    x = operand(a)
    return np.histogram_bin_edges(np.empty(0, x.dtype), *_ends(x, bins, range))


@implements(np.histogramdd)
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Implement :func:`numpy.histogramdd`."""
    is_matrix = isinstance(sample, ShardedArray) and sample.ndim == 2
    x: Any = sample if is_matrix else np.stack([operand(each) for each in sample], axis=1)
    number = x.shape[1]
    bins = [bins] * number if np.ndim(bins) == 0 else [everywhere(each) for each in bins]
    limits = [None] * number if range is None else list(range)
    limits = [
        _ends(x[:, d], each, limit)[1] if limit is None else limit
        for d, (each, limit) in enumerate(zip(bins, limits, strict=True))
    ]
    options: dict[str, Any] = {"bins": bins, "range": limits}
    operands = [x] if weights is None else [x, operand(weights)]
    empty = np.empty((0, number), x.dtype)
    counts, edges = np.histogramdd(empty, **options)

    def count(tile: Array, *weights: Array) -> Array:
        counts: Array = np.histogramdd(tile, **options, weights=weights[0] if weights else None)[0]
        return counts

    found = _counted("histogramdd", count, operands, [("i", None), ("i",)][: len(operands)], counts.shape, counts.dtype)
    if density:
        total = np.sum(found)
        for d, edge in enumerate(edges):
            found = found / np.diff(edge).reshape([-1 if d == other else 1 for other in range_of(number)])
        found = found / total
    return found, edges


@implements(np.histogram2d)
def histogram2d(  # noqa: PLR0917  # NumPy's
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """Implement :func:`numpy.histogram2d`."""
    single = np.ndim(bins) == 1 and len(bins) not in (1, 2)
    counts, edges = np.histogramdd([x, y], [bins, bins] if single else bins, range, density, weights)
    return counts, edges[0], edges[1]
