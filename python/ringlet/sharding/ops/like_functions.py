"""Copies, dtype conversions, and new arrays like a given array."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import gathered, implements
from ringlet.sharding.execution.cached_calls import cached
from ringlet.sharding.execution.device_threads import on_devices
from ringlet.sharding.execution.shape_inference import shape_probe
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.layout.factors import EVERY_OP, FactorMap
from ringlet.sharding.layout.layout import WHOLE, Array, Layout
from ringlet.sharding.resharding.device_buffers import empty, filling_devices
from ringlet.sharding.sharded_array import ShardedArray


def astype(  # noqa: PLR0917  # NumPy's
    x: ShardedArray, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
) -> ShardedArray:
    """Implement ``x.astype(dtype)``."""
    target = np.empty(0, x.dtype).astype(dtype, order, casting, subok).dtype
    if _depends_on_values(x.dtype, np.dtype(dtype)):
        target = gathered("astype", x).astype(dtype).dtype
    if not copy and target == x.dtype:
        return x
    labels = tuple(range(x.ndim))
    # Partial values stay partial only if the dtype is unchanged: rounding twice differs from rounding once.
    linear = (frozenset({0}),) if target == x.dtype else ()
    same = FactorMap((labels,), labels, linear=linear, linear_ops=EVERY_OP)
    made: ShardedArray = cached(
        ("astype", target),
        (x,),
        lambda: apply("astype", same, _cast, [x], target),
        exact=lambda array: array.astype(target),
    )
    return made


def _depends_on_values(source: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Return whether NumPy derives the text length or date unit of the result from the elements."""
    if wanted.kind in "mM":
        return source.kind in "OSU" and np.datetime_data(wanted)[0] == "generic"
    return source.kind == "O" and wanted.itemsize == 0


def _cast(tiles: list[Array], out: Array, _: Any) -> None:
    np.copyto(out, tiles[0], casting="unsafe")


@implements("astype")
def _astype(x: ShardedArray, dtype: Any, /, *, copy: bool = True, device: Any = None) -> ShardedArray:
    if device not in (None, "cpu"):
        np.astype(np.empty(0), dtype, device=device)  # raises NumPy's error
    return astype(x, dtype, copy=copy)


@implements(np.copy)
def copy(a: ShardedArray, order: Any = "K", subok: bool = False) -> ShardedArray:
    """Implement :func:`numpy.copy`: a writable array in the same tiles."""
    return a.copy(order)


def _new(a: ShardedArray, dtype: Any, shape: Any) -> ShardedArray:
    """Allocate an array divided as `a`, or undivided if the number of dimensions differs."""
    layout = a._layout.without_parts()
    sizes = a.shape if shape is None else shape_probe(shape).shape if not isinstance(shape, int) else (shape,)
    if len(sizes) != a.ndim:
        layout = Layout(layout.num_devices, (WHOLE,) * len(sizes), only=layout.only)
    return empty(tuple(sizes), np.dtype(a.dtype if dtype is None else dtype), layout, a._group)


def _filled(x: ShardedArray, value: Any) -> ShardedArray:
    devices = filling_devices(x)
    on_devices(
        lambda device: np.copyto(x._tile(device), value, casting="unsafe"),
        devices,
        x.size * x.dtype.itemsize // max(1, len(devices)),
    )
    return x


@implements(np.empty_like)
def empty_like(
    prototype: ShardedArray,
    /,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> ShardedArray:
    """Implement :func:`numpy.empty_like`."""
    _check(dtype, order, device)
    return _new(prototype, dtype, shape)


@implements(np.zeros_like)
def zeros_like(
    a: ShardedArray, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> ShardedArray:
    """Implement :func:`numpy.zeros_like`."""
    _check(dtype, order, device)
    made = _new(a, dtype, shape)
    return _filled(made, np.zeros((), made.dtype)[()])


@implements(np.ones_like)
def ones_like(
    a: ShardedArray, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> ShardedArray:
    """Implement :func:`numpy.ones_like`."""
    _check(dtype, order, device)
    return _filled(_new(a, dtype, shape), 1)


@implements(np.full_like)
def full_like(  # noqa: PLR0917  # NumPy's
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """Implement :func:`numpy.full_like`."""
    if not isinstance(a, ShardedArray):
        return NotImplemented
    _check(dtype, order, device)
    made = _new(a, dtype, shape)
    if np.ndim(fill_value) == 0:
        return _filled(made, np.asarray(fill_value) if isinstance(fill_value, ShardedArray) else fill_value)
    made[...] = fill_value
    return made


def _check(dtype: Any, order: Any, device: Any) -> None:
    np.empty_like(np.empty(0), dtype, order, **({} if device is None else {"device": device}))
