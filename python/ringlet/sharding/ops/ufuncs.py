"""Calls of NumPy's ufuncs, with a fast path for plain elementwise calls in memory that devices share.

A plan is cached for each (ufunc, shapes, dtypes, layouts), so an operation that moves nothing costs little more than
the ufunc. If devices share memory, each element is computed once, from its operands alone, with identical bits on any
device. Small work is therefore computed in one call. For larger work, the device threads compute one slab for
each device, contiguous if the first dimension is long enough (tiles of columns are not contiguous and take four times
as long to add).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ringlet.collectives import Op
from ringlet.sharding.creation import refuse_sparse
from ringlet.sharding.execution.array_function_table import gathered, has_subclass
from ringlet.sharding.execution.cached_calls import of_parts, run_cached
from ringlet.sharding.execution.device_threads import INLINE_BYTES, in_threads
from ringlet.sharding.execution.linearity import keeps_parts, may_keep_parts, origin_at, settled
from ringlet.sharding.execution.propagation import plan
from ringlet.sharding.execution.ufunc_table import handler_of, is_cached
from ringlet.sharding.explain_operations import is_recording, record_operation
from ringlet.sharding.layout.device_group import DeviceGroup, common_group
from ringlet.sharding.layout.factors import FactorMap, broadcast_factors
from ringlet.sharding.layout.layout import Box, Layout, Shape, tile_bounds
from ringlet.sharding.memory_modes import current_mode
from ringlet.sharding.ops.elementwise import NEEDS_OWN_MEMORY, broadcast_shape, effort_of, result_dtypes
from ringlet.sharding.resharding.device_buffers import fresh
from ringlet.sharding.resharding.reshard import materialized
from ringlet.sharding.sharded_array import ShardedArray
from ringlet.values.operator_proxy import plain

_NUMBERS = frozenset((bool, int, float, complex))


def call(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a method of a ufunc with a ShardedArray among its arguments: tile by tile, or on gathered arrays."""
    if ufunc is np.square and method == "__call__" and getattr(inputs[0], "dtype", np.dtype(bool)).kind == "c":
        # np.square may round short complex arrays differently; np.multiply gives the same bits for tiles of any size.
        ufunc, inputs = np.multiply, inputs * 2
    out = kwargs.get("out", ())
    if method == "__call__" and len(kwargs) == len(out) < 2:
        if ufunc.signature is None:
            short = _fast_path(ufunc, inputs, *out)
        else:
            short = None if out else run_cached(ufunc, [settled(x) for x in inputs])
        if short is not None:
            return short if out else short._as_result()
    if any(_is_foreign(value) for value in (*inputs, *out)):
        return NotImplemented
    for value in inputs:
        refuse_sparse(value)
    inputs = tuple(plain(value) for value in inputs)
    handler = None if method != "at" and has_subclass(map(type, (*inputs, *out))) else handler_of(ufunc, method)
    result = NotImplemented if handler is None else handler(ufunc, inputs, kwargs)
    if result is NotImplemented:
        return _call_gathered(ufunc, method, inputs, kwargs)
    return result._as_result() if isinstance(result, ShardedArray) and not out else result


def _is_foreign(value: Any) -> bool:
    kind = type(value)
    return (
        kind not in _NUMBERS
        and not isinstance(value, (ShardedArray, np.generic))
        and getattr(kind, "__array_ufunc__", np.ndarray.__array_ufunc__) is not np.ndarray.__array_ufunc__
    )


def _call_gathered(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    places = kwargs.get("out", ())
    inputs, kwargs = gathered(name, inputs), {key: gathered(name, v) for key, v in kwargs.items() if key != "out"}
    if places:
        kwargs["out"] = tuple(np.array(place) if isinstance(place, ShardedArray) else place for place in places)
    result = getattr(ufunc, method)(*inputs, **kwargs)
    for place, written in zip(places, kwargs.get("out", ()), strict=True):
        if isinstance(place, ShardedArray):
            place[...] = written
    if not places:
        return result
    return (
        places[0]
        if ufunc.nout == 1 or method != "__call__"
        else tuple(given if place is None else place for place, given in zip(places, result, strict=True))
    )


class _Plan(NamedTuple):
    """Plan of the fast path for operands of one kind; ``boxes[slab]`` has a box for each operand, then the result.

    `bytes_per_slab` is the number of bytes read and written, multiplied by the effort.
    """

    shape: Shape
    dtype: np.dtype[Any]
    layout: Layout
    bytes_per_slab: int
    boxes: tuple[tuple[Box, ...], ...]


def _fast_path(ufunc: np.ufunc, inputs: tuple[Any, ...], target: Any = None) -> ShardedArray | None:
    """Compute an elementwise call without transfers, into a target if given; None for all other calls."""
    if target is not None:
        if type(target) is not ShardedArray or ufunc in NEEDS_OWN_MEMORY or target._layout.is_partial:
            return None
        target._writable_buffers()  # separates arrays that share memory; must precede reading the operands
    found = _operands(inputs)
    if found is None:
        return _with_parts(ufunc, inputs, target)
    kinds, arrays, sharded = found
    group = sharded[0]._group
    if any(x._group is not group for x in sharded[1:]):
        group = common_group(ufunc.__name__, sharded)
    chosen = (_planned if is_cached(ufunc) else _planned.__wrapped__)(ufunc, *kinds)
    if chosen is None or group.member is not None or current_mode() != "shared":
        return None
    is_little = chosen.bytes_per_slab * len(chosen.boxes) <= INLINE_BYTES
    if target is None:
        result = ShardedArray._of_whole(fresh(chosen.shape, chosen.dtype), chosen.layout, group)
    elif _takes(target, chosen, group) and (is_little or not _overlaps(target, inputs, arrays)):
        result = target
    else:
        return None
    if is_little:
        ufunc(*arrays, out=result._whole)
    else:
        _fill(ufunc, arrays, result, chosen)
    record_operation(ufunc.__name__, inputs, result)
    return result


def _operands(inputs: tuple[Any, ...]) -> tuple[list[Any], list[Any], list[ShardedArray]] | None:
    """Return the operands' kinds, plain values, and sharded arrays; None for unshared memory or other types."""
    kinds: list[Any] = []
    arrays: list[Any] = []
    sharded: list[ShardedArray] = []
    for value in inputs:
        kind = type(value)
        if kind is ShardedArray:
            if value._whole is None:
                return None
            sharded.append(value)
            arrays.append(value._whole)
            kinds.append((value._layout, value._shape, value._dtype))
            continue
        if kind in _NUMBERS:
            kinds.append(kind)
        elif kind is np.ndarray or isinstance(value, np.generic):
            kinds.append((None, value.shape, value.dtype))
        else:
            return None
        arrays.append(value)
    return (kinds, arrays, sharded) if sharded else None


def _with_parts(ufunc: np.ufunc, inputs: tuple[Any, ...], target: Any) -> ShardedArray | None:
    """Compute a call whose partial operands are 0-d or have already been combined; None for all other calls."""
    if is_recording():
        return None
    known, partial = [*inputs], []
    for n, value in enumerate(inputs):
        if type(value) is ShardedArray and value._whole is None:
            if value._settled is not None:
                known[n] = value._settled
            elif value._shape or value._group.member is not None or not value._layout.is_partial:
                return None
            else:
                partial.append(n)
    if partial and may_keep_parts(ufunc, known, frozenset(partial)):
        return None if target is not None or len(partial) > 1 else _part_by_part(ufunc, known, partial[0])
    for n in partial:
        known[n] = materialized(known[n])
    return None if all(map(operator.is_, known, inputs)) else _fast_path(ufunc, tuple(known), target)


def _part_by_part(ufunc: np.ufunc, inputs: Sequence[Any], place: int) -> ShardedArray | None:
    """Compute a call on each part of a partial 0-d array, as for products with numbers; None for all other calls."""
    x = inputs[place]
    kinds = [type(value) if type(value) in _NUMBERS else getattr(value, "dtype", None) for value in inputs]
    is_one = not any(kind is None or getattr(value, "shape", ()) for kind, value in zip(kinds, inputs, strict=True))
    if x._combine is not Op.SUM or not is_one or current_mode() != "shared":
        return None
    numbers: list[Any] = []
    for value in inputs:
        number = value._whole if type(value) is ShardedArray and value is not x else value
        if number is None:
            return None
        # Copied, because the number is used again when the parts are combined, and may have changed by then.
        numbers.append(number.copy() if type(number) is np.ndarray else number)
    (dtype,) = result_dtypes(ufunc, kinds, {})
    count, base = x._layout.parts.count, x._buffers[0].base
    has_block = base is not None and base.shape == (count,) and all(each.base is base for each in x._buffers)
    if not has_block or dtype.kind == "c" or not keeps_parts(ufunc, numbers, place, dtype):
        return None

    def run(value: Any, out: Any = None) -> Any:
        return ufunc(*numbers[:place], value, *numbers[place + 1 :], out=out)

    def compute(known: ShardedArray) -> ShardedArray:
        if known._whole is None:
            return run(known)  # type: ignore[no-any-return]
        return ShardedArray._of_whole(run(known._whole, fresh((), dtype)), known._layout, known._group)._as_result()

    made = of_parts(run(base, fresh((count,), dtype)), x._layout, x._group, Op.SUM)
    made._origin = origin_at(x, compute)
    return made


def _takes(target: ShardedArray, chosen: _Plan, group: DeviceGroup) -> bool:
    return (
        target._whole is not None
        and target.dtype == chosen.dtype
        and target.shape == chosen.shape
        and target._layout == chosen.layout
        and target._group == group
    )


def _overlaps(target: ShardedArray, inputs: tuple[Any, ...], arrays: list[Any]) -> bool:
    """Return whether a slab may be written while another thread still reads it."""
    return any(
        x is not target and isinstance(array, np.ndarray) and np.may_share_memory(target._whole, array)
        for x, array in zip(inputs, arrays, strict=True)
    )


def _fill(ufunc: np.ufunc, arrays: list[Any], result: ShardedArray, chosen: _Plan) -> None:
    whole = result._whole
    assert whole is not None

    def work(slab: int) -> None:
        *boxes, place = chosen.boxes[slab]
        parts = [x[box] if box else x for x, box in zip(arrays, boxes, strict=True)]  # numbers have no boxes
        ufunc(*parts, out=whole[place])

    in_threads(work, range(len(chosen.boxes)), chosen.bytes_per_slab, is_alone=result._group.num_devices == 1)


def _slabs(shape: Shape, shapes: Sequence[Shape], count: int) -> tuple[tuple[Box, ...], ...]:
    """Divide result and operands into up to `count` boxes along the first dimension that suffices, else the longest."""
    if not shape:
        return (((),) * (len(shapes) + 1),)
    axis = next((axis for axis, size in enumerate(shape) if size >= count), int(np.argmax(shape)))
    return tuple(
        tuple(
            tuple(
                slice(*bounds) if axis - len(shape) == place and each[place] != 1 else slice(None)
                for place in range(-len(each), 0)
            )
            for each in (*shapes, shape)
        )
        for bounds in tile_bounds(shape[axis], count)
        if bounds[0] < bounds[1]
    )


@lru_cache(maxsize=4096)
def _planned(ufunc: np.ufunc, *kinds: Any) -> _Plan | None:
    """Return the plan for kinds of operands; None if the fast path does not apply.

    A kind is the layout (None for a plain array), shape and dtype, or the type of a Python number.
    """
    if ufunc.signature is not None or ufunc.nout != 1 or (ufunc in NEEDS_OWN_MEMORY and ufunc is not np.negative):
        return None
    shapes = tuple(() if isinstance(kind, type) else kind[1] for kind in kinds)
    layouts = tuple(None if isinstance(kind, type) else kind[0] for kind in kinds)
    itemsizes = tuple(0 if isinstance(kind, type) else kind[2].itemsize for kind in kinds)
    try:
        (dtype,) = result_dtypes(ufunc, [kind if isinstance(kind, type) else kind[2] for kind in kinds], {})
    except TypeError:  # for example text times a number, whose dtype is known only with `out`
        return None
    shape = broadcast_shape(shapes)
    operands, result = broadcast_factors(shapes)
    chosen = plan(FactorMap(operands, result), shapes, itemsizes, layouts, dtype.itemsize)
    if chosen.nbytes:
        return None
    slabs = _slabs(shape, shapes, len(chosen.result_layout.holders))
    nbytes = sum(math.prod(s) * i for s, i in zip((*shapes, shape), (*itemsizes, dtype.itemsize), strict=True))
    return _Plan(shape, dtype, chosen.result_layout, nbytes * effort_of(ufunc) // max(1, len(slabs)), slabs)
