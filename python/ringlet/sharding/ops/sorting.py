"""Sort and its family, along dimensions that are not cut."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.tile_execution import Where, apply
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import WHOLE
from ringlet.sharding.resharding.reshard import settled
from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["along_lines"]

Array = NDArray[Any]

# How often sorting goes over its lines, about.
_EFFORT = 8.0


def along_lines(function: Callable[..., Any], a: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function that changes the order of elements along one dimension with each tile.

    Parameters
    ----------
    function : callable
        Of NumPy, with an argument `axis`.
    a : ShardedArray
    *args, **kwargs
        As `function` has them.

    Returns
    -------
    ShardedArray
        ``NotImplemented`` if the dimension is cut: to gather the array once sends less than to bring each device whole
        lines, and its part of the result back.

    Examples
    --------
    >>> from ringlet.sharding import Sharding, shard
    >>> x = shard(np.array([[3, 1, 2], [6, 5, 4]]), Sharding.tiled((2, 1)))
    >>> np.asarray(along_lines(np.argsort, x, axis=1)).tolist()
    [[1, 2, 0], [2, 1, 0]]
    """
    given = _signature(function).bind(a, *args, **kwargs).arguments
    axis = given.get("axis", -1)
    if not isinstance(a, ShardedArray) or axis is None or not a.ndim or a.dtype.hasobject:
        return NotImplemented
    line = operator.index(axis) % a.ndim if "kth" in given else None  # places in a line are checked, too
    shape = tuple(size if place == line else min(size, 1) for place, size in enumerate(a.shape))
    model = function(np.zeros(shape, a.dtype), *args, **kwargs)  # raises what there is to raise
    x = settled(a)
    if x._layout.cuts[axis] != WHOLE:
        return NotImplemented

    def kernel(tiles: list[Any], result: Array, _: Where) -> None:
        result[...] = function(tiles[0], *args, **kwargs)

    labels = tuple(range(x.ndim))
    return apply(function.__name__, FactorMap((labels,), labels), kernel, [x], model.dtype, effort=_EFFORT)


@lru_cache(maxsize=8)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _implement(function: Callable[..., Any]) -> None:
    def along(a: Any, *args: Any, **kwargs: Any) -> Any:
        return along_lines(function, a, *args, **kwargs)

    implements(function)(along)


for _function in (np.sort, np.argsort, np.partition, np.argpartition):
    _implement(_function)
