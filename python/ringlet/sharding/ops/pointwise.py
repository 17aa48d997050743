"""Elementwise functions that are not ufuncs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements, numpy_function
from ringlet.sharding.execution.shape_inference import dtype_probe
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.layout.factors import FactorMap, broadcast_factors
from ringlet.sharding.layout.layout import Array
from ringlet.sharding.ops.elementwise import broadcast_shape, operand
from ringlet.sharding.resharding.pencils import all_gathered
from ringlet.sharding.sharded_array import ShardedArray

# Functions of numpy with the names of their array arguments. Other arguments are the same for each tile; if sharded,
# they are sent to all devices.
_FUNCTIONS = """angle(z) around(a) fix(x) i0(x) iscomplex(x) isclose(a,b,rtol,atol) isneginf(x) isposinf(x) isreal(x)
    nan_to_num(x) round(a) sinc(x) digitize(x) interp(x) isin(element) polyval(x) searchsorted(v)
    char.equal(x1,x2) char.not_equal(x1,x2) char.less(x1,x2) char.less_equal(x1,x2) char.greater(x1,x2)
    char.greater_equal(x1,x2) strings.capitalize(a) strings.lower(a) strings.upper(a) strings.swapcase(a)
    strings.title(a)"""


def apply_pointwise(
    name: str,
    function: Callable[..., Any],
    operands: Sequence[Any],
    *,
    kernel: Callable[[list[Any], Array], object] | None = None,
    out: Any = None,
) -> Any:
    """Call a function with each tile of its operands, which are broadcast together.

    The function is called with empty arrays to determine the dtype. ``kernel(tiles, out)`` is a faster form that writes
    to `out`.
    """
    operands = [operand(value) for value in operands]
    shapes = [np.shape(x) for x in operands]
    shape = broadcast_shape(shapes)
    labels, result = broadcast_factors([*shapes, shape])
    dtype = np.asarray(function(*map(dtype_probe, operands))).dtype

    def fill(tiles: list[Any], place: Array, _: Any) -> None:
        if kernel is None:
            place[...] = function(*tiles)
        else:
            kernel(tiles, place)

    return apply(name, FactorMap(labels[:-1], result), fill, operands, dtype, out=out, shape=shape)


def _of_tiles(name: str, function: Callable[..., Any], arrays: tuple[str, ...]) -> Callable[..., Any]:
    signature = inspect.signature(function)

    def implementation(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs).arguments
        given = [array for array in arrays if array in bound]
        operands = [bound.pop(array) for array in given]
        out = bound.pop("out", None)
        bound.update({key: all_gathered(value) for key, value in bound.items()})
        if not any(isinstance(value, ShardedArray) for value in (*operands, out)):
            return function(**dict(zip(given, operands, strict=True)), **bound)
        if name == "nan_to_num" and not bound.get("copy", True):
            out, bound["copy"] = operands[0], True

        def call(*tiles: Any) -> Any:
            return function(**dict(zip(given, tiles, strict=True)), **bound)

        def quiet(tiles: list[Any], place: Array) -> None:
            with np.errstate(invalid="ignore"):
                place[...] = call(*tiles)

        # NumPy's isclose warns only about its tolerances, and the call that determines the dtype has already given
        # these warnings.
        return apply_pointwise(name, call, operands, out=out, kernel=quiet if name == "isclose" else None)

    return implementation


for _name, _arrays in re.findall(r"([\w.]+)\((.*?)\)", _FUNCTIONS):
    _function = numpy_function(_name)
    if _function is not None:
        implements(_function)(_of_tiles(_name, _function, tuple(_arrays.split(","))))


implements(np.real)(lambda val: val.real)
implements(np.imag)(lambda val: val.imag)


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: Any = "C") -> tuple[Any, ...]:
    """Implement :func:`numpy.unravel_index`."""
    places = range(np.size(shape))
    return tuple(
        apply_pointwise("unravel_index", lambda x, d=d: np.unravel_index(x, shape, order)[d], [indices]) for d in places
    )


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Any:
    """Implement :func:`numpy.ravel_multi_index`."""
    return apply_pointwise(
        "ravel_multi_index", lambda *indices: np.ravel_multi_index(indices, dims, mode, order), list(multi_index)
    )
