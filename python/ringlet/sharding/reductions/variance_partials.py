"""Variance partials: counts, means and squared deviations of tiles, and their combination."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet.sharding.execution.tile_execution import TileBoxes
from ringlet.sharding.layout.layout import Array
from ringlet.sharding.reductions.reduction_execution import Reduction, sum_tile

__all__ = ["Finish", "from_moments", "moment_dtype"]


# Makes a result of (count, mean, spread): the spread is the sum of squared deviations from the mean.
Finish = Callable[[Array, Array, Array], Array]


def moment_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the structured dtype of moments: a count, a mean of `dtype` and a real spread of the same precision."""
    return np.dtype([("count", np.int64), ("mean", dtype), ("spread", np.zeros((), dtype).real.dtype)])


def from_moments(
    reduction: Reduction, finish: Finish, work_dtype: np.dtype[Any], dtype: np.dtype[Any], *, out: Any, skips_nan: bool
) -> Any:
    """Reduce an array to a function of its count, mean and spread.

    Each tile computes its moments in two passes, as NumPy does. Gathered moments are combined: the total spread is the
    sum of each tile's spread and of its count times the squared distance of its mean from the total mean (Chan, Golub
    and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
    """
    axes = reduction.axes

    def of_tile(tile: Array, mask: Array | None, pieces: Array, _: TileBoxes) -> None:
        if skips_nan:
            known = ~np.isnan(tile)
            mask = known if mask is None else known & mask
            tile = np.where(mask, tile, tile.dtype.type(0))
        chosen: dict[str, Any] = {} if mask is None else {"where": mask}
        mean, spread = pieces["mean"], pieces["spread"]
        pieces["count"] = count = _count(tile, mask, axes)
        sum_tile(tile, axes, mean, keepdims=True, **chosen)
        np.true_divide(mean, np.maximum(count, 1), out=mean, casting="unsafe")
        distance = np.subtract(tile, mean, dtype=work_dtype)
        sum_tile(_squared(distance), axes, spread, keepdims=True, **chosen)

    def of_all(pieces: Array, result: Array) -> None:
        counts, means, spreads = pieces["count"], pieces["mean"], pieces["spread"]
        count = np.add.reduce(counts, axes, keepdims=True)
        mean = np.add.reduce(counts * means, axes, keepdims=True) / np.maximum(count, 1)
        spread = np.add.reduce(spreads + counts * _squared(means - mean), axes, keepdims=True, dtype=np.float64)
        result[...] = finish(count, mean, spread)

    return reduction.in_two_stages(of_tile, moment_dtype(work_dtype), of_all, dtype, out)


def _count(tile: Array, mask: Array | None, axes: tuple[int, ...]) -> Array:
    if mask is None:
        return np.asarray(math.prod(tile.shape[axis] for axis in axes))
    count: Array = np.add.reduce(np.broadcast_to(mask, tile.shape), axes, np.int64, keepdims=True)
    return count


def _squared(distance: Array) -> Array:
    if distance.dtype.kind == "c":
        squares: Array = distance.real**2 + distance.imag**2
        return squares
    return np.multiply(distance, distance, out=distance)
