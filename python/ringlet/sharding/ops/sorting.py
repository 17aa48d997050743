"""Sort and similar functions, along dimensions that are not divided."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import WHOLE, Array
from ringlet.sharding.resharding.reshard import materialized
from ringlet.sharding.sharded_array import ShardedArray

# Approximate number of passes of a sort over its lines.
_EFFORT = 8.0


def along_lines(function: Callable[..., Any], a: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a NumPy function that reorders elements along `axis` with each tile.

    Return ``NotImplemented`` if `axis` is divided: gathering the array once sends less than exchanging whole lines and
    results.
    """
    given = _signature(function).bind(a, *args, **kwargs).arguments
    axis = given.get("axis", -1)
    if not isinstance(a, ShardedArray) or axis is None or not a.ndim or a.dtype.hasobject:
        return NotImplemented
    line = operator.index(axis) % a.ndim if "kth" in given else None  # indices within a line are checked too
    shape = tuple(size if place == line else min(size, 1) for place, size in enumerate(a.shape))
    model = function(np.zeros(shape, a.dtype), *args, **kwargs)  # raises NumPy's error
    x = materialized(a)
    if x._layout.cuts[axis] != WHOLE:
        return NotImplemented

    def kernel(tiles: list[Any], result: Array, _: TileBoxes) -> None:
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
