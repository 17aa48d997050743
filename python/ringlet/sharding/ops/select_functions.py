"""Selection between arrays and of elements: where, clip, choose, select, copyto, tril and triu."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.shape_inference import dtype_probe, shape_probe
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.layout.factors import FactorMap, broadcast_factors
from ringlet.sharding.layout.layout import Array
from ringlet.sharding.ops.elementwise import broadcast_shape, operand
from ringlet.sharding.ops.pointwise import apply_pointwise
from ringlet.sharding.sharded_array import ShardedArray

# Keyword pairs for the limits of clip; a call may use one pair.
_LIMITS = ("a_min", "a_max", "min", "max")


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Implement :func:`numpy.where`, tile by tile if `x` and `y` are given."""
    if x is None or y is None:
        return np.nonzero(condition) if x is y else NotImplemented

    def kernel(tiles: list[Any], out: Array) -> None:
        # Numbers are converted to arrays, because np.copyto would check their range and np.where does not.
        np.copyto(out, np.asarray(tiles[2]), casting="unsafe")
        np.copyto(out, np.asarray(tiles[1]), casting="unsafe", where=np.asarray(tiles[0], bool))

    return apply_pointwise("where", np.where, [condition, x, y], kernel=kernel)


@implements(np.clip)
def clip(a: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    """Implement :func:`numpy.clip`."""
    limited: Any = np.clip
    # Raises NumPy's error for missing or contradictory bounds.
    limited(np.empty(0), *(0 for _ in args[:2]), **dict.fromkeys(kwargs.keys() & _LIMITS, 0))
    bounds = dict(zip(("a_min", "a_max", "out"), args, strict=False)) | kwargs
    limits = {name: bounds.pop(f"a_{name}", bounds.pop(name, None)) for name in ("min", "max")}
    given = [name for name, limit in limits.items() if limit is not None and limit is not np._NoValue]
    out = bounds.pop("out", out)
    if bounds:
        return NotImplemented

    def bounded(tile: Any, *bounds: Any, out: Any = None) -> Any:
        low, high = (dict(zip(given, bounds, strict=True)).get(name) for name in ("min", "max"))
        return np.clip(tile, low, high, out=out)

    return apply_pointwise(
        "clip",
        bounded,
        [a, *(limits[name] for name in given)],
        kernel=lambda tiles, place: bounded(*tiles, out=place),
        out=out,
    )


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    """Implement :func:`numpy.choose`."""
    return apply_pointwise(
        "choose", lambda index, *tiles: np.choose(index, tiles, mode=mode), [operand(a), *choices], out=out
    )


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Implement :func:`numpy.select`."""
    number = len(condlist)
    if number != len(choicelist) or not number:
        np.select([True] * number, [0] * len(choicelist))  # raises NumPy's error

    def chosen(*tiles: Any) -> Any:
        return np.select([*tiles[:number]], [*tiles[number:-1]], tiles[-1])

    return apply_pointwise("select", chosen, [*condlist, *choicelist, default])


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> Any:
    """Implement :func:`numpy.copyto`: each device writes to its own tile."""
    if not isinstance(dst, ShardedArray):
        return NotImplemented
    values, mask = operand(src), operand(where)
    # Raises NumPy's error for invalid dtypes.
    np.copyto(np.empty(0, dst.dtype), dtype_probe(values), casting=casting, where=dtype_probe(mask))
    if mask is True:
        dst[...] = values if isinstance(values, ShardedArray) else np.asarray(values)
        return None
    operands = [dst, values, mask]
    shapes = [np.shape(x) for x in operands]
    if broadcast_shape(shapes) != dst.shape:
        np.copyto(shape_probe(dst.shape).copy(), shape_probe(shapes[1]), where=shape_probe(shapes[2]))
        # NumPy raised no error, so dimensions that only the source has are of size 1.
        operands[1] = values[(0,) * (values.ndim - dst.ndim)]
    labels, result = broadcast_factors([np.shape(x) for x in operands])

    def kernel(tiles: list[Any], out: Array, _: TileBoxes) -> None:
        np.copyto(out, tiles[0])
        np.copyto(out, tiles[1], casting="unsafe", where=tiles[2])

    apply("copyto", FactorMap(labels, result), kernel, operands, dst.dtype, out=dst)
    return None


def _triangle(name: str, is_lower: bool) -> Any:
    def triangle(m: ShardedArray, k: int = 0) -> Any:
        if m.ndim < 2:
            return NotImplemented
        labels = tuple(range(m.ndim))

        def kernel(tiles: list[Array], out: Array, place: TileBoxes) -> None:
            rows, columns = place.result[-2:]
            below = np.tri(out.shape[-2], out.shape[-1], k=k - (not is_lower) + rows.start - columns.start, dtype=bool)
            out[...] = np.zeros((), out.dtype)
            np.copyto(out, tiles[0], where=below if is_lower else ~below)

        return apply(name, FactorMap((labels,), labels), kernel, [m], m.dtype)

    return triangle


tril = implements(np.tril)(_triangle("tril", is_lower=True))
triu = implements(np.triu)(_triangle("triu", is_lower=False))
