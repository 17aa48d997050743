"""Functions that permute, flip, drop, insert and broadcast dimensions; most return views."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import first_given, implements, numpy_function
from ringlet.sharding.execution.shape_inference import addresses_of
from ringlet.sharding.layout.layout import WHOLE, Array
from ringlet.sharding.resharding.regions import IndexRange
from ringlet.sharding.resharding.tile_assembly import full_ranges, repeated, select_ranges
from ringlet.sharding.sharded_array import ShardedArray

_FUNCTIONS = """transpose swapaxes moveaxis rollaxis matrix_transpose linalg.matrix_transpose squeeze broadcast_to
    flip fliplr flipud rot90"""


def apply_view_function(function: Callable[..., Array], x: ShardedArray, *args: Any, **kwargs: Any) -> ShardedArray:
    """Apply a function that returns a view with other strides, such as :func:`numpy.transpose`.

    The function is applied to an array whose strides number its dimensions. The strides of the result reveal its
    effect: reversed dimensions have negative strides, new dimensions have stride 0.
    """
    kwargs.pop("subok", None)
    sample = function(addresses_of(x.shape), *args, **kwargs)
    # NumPy may give a dimension of size 1 any stride.
    strides = sample.strides if x.ndim else (0,) * sample.ndim
    dimensions = [abs(stride) - 1 if stride else None for stride in strides]
    kept = [dimension for dimension in dimensions if dimension is not None]
    gone = [dimension for dimension in range(x.ndim) if dimension not in kept]
    ranges = list(full_ranges(x.shape))
    for stride in strides:
        if stride < 0:
            size = x.shape[-stride - 1]
            ranges[-stride - 1] = IndexRange(max(size - 1, 0), -1, size)
    cuts = [WHOLE if dimension in gone else cut for dimension, cut in enumerate(x._layout.cuts)]
    taken = select_ranges(function.__name__, x, tuple(ranges), x._layout.with_cuts(cuts))
    layout = taken._layout.with_cuts([WHOLE if d is None else taken._layout.cuts[d] for d in dimensions])
    key = (*(None if d is None else slice(None) for d in dimensions), *(0 for _ in gone), ...)
    return taken._derive(lambda buffer: repeated(buffer.transpose(kept + gone)[key], sample.shape), layout)


for _function in map(numpy_function, _FUNCTIONS.split()):
    if _function is not None:
        implements(_function)(first_given(_function, partial(apply_view_function, _function)))


@implements(np.expand_dims)
def expand_dims(a: ShardedArray, axis: Any) -> ShardedArray:
    """Implement :func:`numpy.expand_dims`."""
    ndim = np.expand_dims(addresses_of(a.shape), axis).ndim
    made = {number % ndim for number in (axis if isinstance(axis, (tuple, list)) else (axis,))}
    key = (*(None if dimension in made else slice(None) for dimension in range(ndim)), ...)
    expanded: ShardedArray = a[key]
    return expanded


def _at_least(function: Callable[..., Any]) -> Callable[..., Any]:
    def each(*arrays: Any) -> Any:
        made = tuple(apply_view_function(function, x) if isinstance(x, ShardedArray) else function(x) for x in arrays)
        return made[0] if len(made) == 1 else made

    return each


for _function in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
    implements(_function)(_at_least(_function))


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    """Implement :func:`numpy.broadcast_arrays`."""
    shape = np.broadcast_shapes(*map(np.shape, args))
    return tuple(np.broadcast_to(array, shape, subok=subok) for array in args)


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Implement :func:`numpy.meshgrid`."""
    if any(np.ndim(x) > 1 for x in xi) or indexing not in ("xy", "ij"):
        return NotImplemented
    order = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        order[:2] = 1, 0
    grids: list[Any] = [
        np.reshape(x, (1,) * place + (-1,) + (1,) * (len(xi) - 1 - place)) for x, place in zip(xi, order, strict=True)
    ]
    if not sparse:
        grids = list(broadcast_arrays(*grids))
    if copy:
        grids = [x.copy() for x in grids]
    kind: Callable[[Any], Any] = type(np.meshgrid(0))  # np.meshgrid returns a tuple, or a list before NumPy 2.0
    return kind(grids)
