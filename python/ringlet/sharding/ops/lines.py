"""Functions of lines along an axis: FFTs, and the user's functions in ``apply_along_axis``."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.shape_inference import shape_probe
from ringlet.sharding.execution.tile_execution import apply, write_out
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import Array
from ringlet.sharding.resharding.pencils import all_gathered, with_whole_axes
from ringlet.sharding.sharded_array import ShardedArray

_EFFORT = 8.0


def apply_to_lines(name: str, function: Callable[[Array], Any], x: ShardedArray, axis: int) -> ShardedArray:
    """Make one axis whole on each device, then call a function of the lines along it that may change their length.

    If the axis was divided, the result may be divided along another dimension instead.
    """
    shape = [size if d == axis else min(size, 1) for d, size in enumerate(x.shape)]
    model = function(np.zeros(shape, x.dtype))
    labels = tuple(range(x.ndim))

    def kernel(tiles: list[Array], out: Array, _: TileBoxes) -> None:
        if out.size:
            out[...] = function(tiles[0])

    shape = [model.shape[d] if d == axis else size for d, size in enumerate(x.shape)]
    rule = FactorMap((labels,), labels, whole=frozenset((axis,)))
    x = with_whole_axes(x, (axis,))
    made: ShardedArray = apply(name, rule, kernel, [x], model.dtype, shape=tuple(shape), effort=_EFFORT)
    return made


def _transform(name: str) -> None:
    function = getattr(np.fft, name)

    @implements(function)
    def transform(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
        if not isinstance(a, ShardedArray):
            return NotImplemented
        if not a.ndim or not -a.ndim <= operator.index(axis) < a.ndim:
            function(shape_probe((1,) * a.ndim, a.dtype), n, axis, norm)  # raises NumPy's error
        along = operator.index(axis) % a.ndim
        made = None
        if a.ndim == 1 and n in (None, a.size) and name in ("fft", "ifft", "rfft"):
            made = _long_transform(a, name, norm)
        if made is None:
            made = apply_to_lines(name, lambda tile: function(tile, n, along, norm), a, along)
        return made if out is None else write_out(out, made)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _transform(_name)


def _long_transform(x: ShardedArray, name: str, norm: Any) -> Any:
    """Transform one line as a matrix by the six-step FFT: columns, twiddle factors, rows.

    Sends the line in three all-to-all exchanges. Returns None if the line is not divided or its size has no suitable
    divisor.
    """
    count, size = x._layout.cuts[0].count, x.size
    rows = [r for r in range(count, math.isqrt(size) + 1, count) if size % r == 0 and (size // r) % count == 0]
    if count == 1 or not rows:
        return None
    function = np.fft.ifft if name == "ifft" else np.fft.fft
    matrix = np.reshape(x, (rows[-1], size // rows[-1]))
    columns: Any = function(matrix, axis=0, norm=norm)
    sign = 2j if name == "ifft" else -2j

    def turn(tiles: list[Array], out: Array, where: TileBoxes) -> None:
        row, column = (np.arange(side.start, side.stop) for side in where.result)
        np.multiply(tiles[0], np.exp(sign * np.pi / size * (row[:, None] * column % size)), out=out, casting="unsafe")

    rule = FactorMap((("i", "j"),), ("i", "j"))
    turned = apply(name, rule, turn, [columns], columns.dtype)
    made: Any = np.ravel(np.transpose(function(turned, axis=1, norm=norm)))
    return made[: size // 2 + 1] if name == "rfft" else made


@implements(np.apply_along_axis)
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Implement :func:`numpy.apply_along_axis`; an additional call determines the shape of the function's result."""
    if not isinstance(arr, ShardedArray) or 0 in arr.shape:
        return NotImplemented
    np.flip(shape_probe((1,) * arr.ndim), axis)  # raises NumPy's error for an invalid axis
    along = operator.index(axis) % arr.ndim
    first = all_gathered(arr[tuple(slice(None) if d == along else 0 for d in range(arr.ndim))])
    model = np.asanyarray(func1d(first, *args, **kwargs))
    before, after = tuple(range(along)), tuple(range(along + 1, arr.ndim))
    made = tuple(("made", d) for d in range(model.ndim))

    def kernel(tiles: list[Array], out: Array, _: TileBoxes) -> None:
        if out.size:
            out[...] = np.apply_along_axis(func1d, along, tiles[0], *args, **kwargs)

    rule = FactorMap(((*before, along, *after),), (*before, *made, *after), whole=frozenset((along,)))
    shape = (*arr.shape[:along], *model.shape, *arr.shape[along + 1 :])
    return apply("apply_along_axis", rule, kernel, [with_whole_axes(arr, (along,))], model.dtype, shape=shape)
