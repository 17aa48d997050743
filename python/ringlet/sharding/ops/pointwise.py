"""Functions that are no ufuncs, and compute each element from those at its place all the same."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.execution.array_function_table import implements, numpy_function
from ringlet.sharding.execution.shape_inference import typed
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.layout.factors import FactorMap, broadcast_factors
from ringlet.sharding.ops.elementwise import broadcast_shape
from ringlet.sharding.sharded_array import ShardedArray
from ringlet.values.operator_proxy import plain

__all__ = ["operand", "tilewise"]

Array = NDArray[Any]

# Names below numpy, and of the arguments that are arrays; the others are the same for each tile.
_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "angle": ("z",),
    "around": ("a",),
    "fix": ("x",),
    "i0": ("x",),
    "iscomplex": ("x",),
    "isclose": ("a", "b"),
    "isneginf": ("x",),
    "isposinf": ("x",),
    "isreal": ("x",),
    "nan_to_num": ("x",),
    "round": ("a",),
    "sinc": ("x",),
    "digitize": ("x",),
    "interp": ("x",),
    "isin": ("element",),
    "polyval": ("x",),
    "searchsorted": ("v",),
}


def tilewise(
    name: str,
    function: Callable[..., Any],
    operands: Sequence[Any],
    *,
    kernel: Callable[[list[Any], Array], object] | None = None,
    out: Any = None,
) -> Any:
    """Call a function with each tile of its operands, which are broadcast together.

    Parameters
    ----------
    name : str
        What reports call it.
    function : callable
        Takes the operands; called without elements, it says what dtype the result has.
    operands : sequence of (ShardedArray, ndarray or number)
    kernel : callable, optional
        ``kernel(tiles, out)`` does the same into `out`, faster.
    out : ShardedArray or ndarray, optional
        What to write the result to.

    Examples
    --------
    >>> from ringlet.sharding import Sharding, shard
    >>> tilewise("sinc", np.sinc, [shard(np.zeros(2), Sharding.tiled((2,)))]).shards
    [array([1.]), array([1.])]
    """
    operands = [operand(value) for value in operands]
    shapes = [np.shape(x) for x in operands]
    shape = broadcast_shape(shapes)
    labels, result = broadcast_factors([*shapes, shape])
    dtype = np.asarray(function(*map(typed, operands))).dtype

    def fill(tiles: list[Any], place: Array, _: Any) -> None:
        if kernel is None:
            place[...] = function(*tiles)
        else:
            kernel(tiles, place)

    return apply(name, FactorMap(labels[:-1], result), fill, operands, dtype, out=out, shape=shape)


def operand(value: Any) -> Any:
    """Give what an operation takes: arrays and numbers as they are, anything else as the array that it is."""
    value = plain(value)
    if isinstance(value, (ShardedArray, np.ndarray, np.generic)) or type(value) in (bool, int, float, complex):
        return value
    return np.asarray(value)


def _of_tiles(name: str, function: Callable[..., Any], arrays: tuple[str, ...]) -> Callable[..., Any]:
    signature = inspect.signature(function)

    def implementation(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs).arguments
        operands = [bound.pop(array) for array in arrays]
        out = bound.pop("out", None)
        if any(isinstance(value, ShardedArray) for value in bound.values()):
            return NotImplemented  # what is the same for each tile would have to be gathered
        if name == "nan_to_num" and not bound.get("copy", True):
            out, bound["copy"] = operands[0], True

        def call(*tiles: Any) -> Any:
            return function(**dict(zip(arrays, tiles, strict=True)), **bound)

        def quiet(tiles: list[Any], place: Array) -> None:
            with np.errstate(invalid="ignore"):
                place[...] = call(*tiles)

        # NumPy's isclose warns of its tolerances, once for all tiles, and of nothing else.
        return tilewise(name, call, operands, out=out, kernel=quiet if name == "isclose" else None)

    return implementation


for _name, _arrays in _FUNCTIONS.items():
    _function = numpy_function(_name)
    if _function is not None:
        implements(_function)(_of_tiles(_name, _function, _arrays))


@implements(np.real)
def real(val: ShardedArray) -> ShardedArray:
    """Do what :func:`numpy.real` does."""
    parts: ShardedArray = val.real
    return parts


@implements(np.imag)
def imag(val: ShardedArray) -> ShardedArray:
    """Do what :func:`numpy.imag` does."""
    parts: ShardedArray = val.imag
    return parts
