"""Functions that turn, flip, drop, make and repeat dimensions: views, but for what flips exchange between devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.execution.array_function_table import first_given, implements, numpy_function
from ringlet.sharding.execution.shape_inference import addresses_of
from ringlet.sharding.layout.layout import WHOLE
from ringlet.sharding.resharding.regions import Run
from ringlet.sharding.resharding.tile_assembly import as_own, full_runs, picked
from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["rearranged"]

Array = NDArray[Any]

_FUNCTIONS: tuple[str, ...] = (
    "transpose",
    "swapaxes",
    "moveaxis",
    "rollaxis",
    "matrix_transpose",
    "linalg.matrix_transpose",
    "squeeze",
    "broadcast_to",
    "flip",
    "fliplr",
    "flipud",
    "rot90",
)


def rearranged(function: Callable[..., Array], x: ShardedArray, *args: Any, **kwargs: Any) -> ShardedArray:
    """Do what a function does that gives a view with other strides.

    Parameters
    ----------
    function : callable
        Such as :func:`numpy.transpose`. What it does to the dimensions is read off the strides it gives an array whose
        strides are their numbers: those it turned around are negative, those it made are 0.
    x : ShardedArray
    *args, **kwargs
        What else it takes.

    Returns
    -------
    ShardedArray
        Values, which are not written to. Dimensions are in the tiles that they were in.

    Examples
    --------
    >>> from ringlet.sharding import Sharding, shard
    >>> x = shard(np.arange(8).reshape(4, 2), Sharding.tiled((2, 1)))
    >>> rearranged(np.rot90, x).shards
    [array([[1, 3],
           [0, 2]]), array([[5, 7],
           [4, 6]])]
    """
    kwargs.pop("subok", None)
    sample = function(addresses_of(x.shape), *args, **kwargs)
    # A single number may be given a dimension of some stride that is not one of its own.
    strides = sample.strides if x.ndim else (0,) * sample.ndim
    dimensions = [abs(stride) - 1 if stride else None for stride in strides]
    kept = [dimension for dimension in dimensions if dimension is not None]
    gone = [dimension for dimension in range(x.ndim) if dimension not in kept]
    runs = list(full_runs(x.shape))
    for stride in strides:
        if stride < 0:
            size = x.shape[-stride - 1]
            runs[-stride - 1] = Run(max(size - 1, 0), -1, size)
    cuts = [WHOLE if dimension in gone else cut for dimension, cut in enumerate(x._layout.cuts)]
    taken = picked(function.__name__, x, tuple(runs), x._layout.with_cuts(cuts))
    layout = taken._layout.with_cuts([WHOLE if d is None else taken._layout.cuts[d] for d in dimensions])
    key = (*(None if d is None else slice(None) for d in dimensions), *(0 for _ in gone), ...)
    return taken._derive(lambda space: np.broadcast_to(space.transpose(kept + gone)[key], sample.shape), layout)


for _function in map(numpy_function, _FUNCTIONS):
    if _function is not None:
        implements(_function)(first_given(_function, partial(rearranged, _function)))


@implements(np.expand_dims)
def expand_dims(a: ShardedArray, axis: Any) -> ShardedArray:
    """Do what :func:`numpy.expand_dims` does."""
    ndim = np.expand_dims(addresses_of(a.shape), axis).ndim
    made = {number % ndim for number in (axis if isinstance(axis, (tuple, list)) else (axis,))}
    key = (*(None if dimension in made else slice(None) for dimension in range(ndim)), ...)
    expanded: ShardedArray = a[key]
    return expanded


def _at_least(function: Callable[..., Any]) -> Callable[..., Any]:
    def each(*arrays: Any) -> Any:
        made = tuple(rearranged(function, x) if isinstance(x, ShardedArray) else function(x) for x in arrays)
        return made[0] if len(made) == 1 else made

    return each


for _function in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
    implements(_function)(_at_least(_function))


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    """Do what :func:`numpy.broadcast_arrays` does."""
    shape = np.broadcast_shapes(*map(np.shape, args))
    return tuple(np.broadcast_to(array, shape, subok=subok) for array in args)


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Do what :func:`numpy.meshgrid` does."""
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
        grids = [as_own(x) if isinstance(x, ShardedArray) else x.copy() for x in grids]
    kind: Callable[[Any], Any] = type(np.meshgrid(0))  # a list in NumPy before 2.0
    return kind(grids)
