"""Tile execution: reshards operands as planned and computes the result tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringlet.collectives import Op
from ringlet.sharding.creation import replicated_with
from ringlet.sharding.execution.cached_calls import StackedCall, stacked
from ringlet.sharding.execution.device_threads import INLINE_BYTES, on_devices
from ringlet.sharding.execution.linearity import checked_linear, settled
from ringlet.sharding.execution.propagation import Plan, TileBoxes, plan
from ringlet.sharding.explain_operations import recorded_as_one
from ringlet.sharding.layout.device_group import DeviceGroup, common_group
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import Array, Box, Layout, Shape
from ringlet.sharding.memory_modes import current_mode
from ringlet.sharding.resharding.device_buffers import buffers_for, empty, fresh
from ringlet.sharding.resharding.reshard import materialized, redistribute
from ringlet.sharding.sharded_array import ShardedArray

Kernel = Callable[[list[Any], Array, TileBoxes], object]


def apply(
    name: str,
    factor_map: FactorMap,
    kernel: Kernel,
    operands: Sequence[Any],
    dtype: Any,
    *,
    out: Any = None,
    shape: Shape | None = None,
    effort: float = 1.0,
    takes_stacks: bool = False,
) -> Any:
    """Run an operation on the tiles of its operands; the result is writable.

    Parameters
    ----------
    kernel : callable
        ``kernel(tiles, out, where)`` computes one tile: it fills `out`, a view of the result, from the operands' tiles.
        Tiles may be empty. The kernel is called in any thread and order, once for each tile that has its own memory.
    operands : sequence of (ShardedArray, ndarray or scalar)
        At least one operand, or `out`, is a ShardedArray. Other arrays are on every device and are sliced there;
        scalars are passed to the kernel unchanged.
    out : ShardedArray, ndarray or None
        Array of the result's shape that receives the result and is returned. May share memory with operands.
    shape : tuple of int or None
        Shape of the result; required if a dimension differs in size from its factor in the operands, or has no factor
        and a size other than 1.
    effort : float
        Approximate number of passes over a tile's bytes; determines whether threads are used.
    takes_stacks : bool
        Whether the kernel may compute all tiles in one call, stacked along leading dimensions, with identical bits and
        without `where`; used for small work.
    """
    operands = replicated_with(out, operands)

    def work() -> Any:
        replaces = isinstance(out, ShardedArray) and out._layout.is_partial and not out._is_view
        if isinstance(out, ShardedArray) and not replaces:
            out._writable_buffers()
        prepared = prepare(name, factor_map, operands, dtype, shape=shape)
        if takes_stacks and (made := _at_once(kernel, prepared, effort)) is not None:
            return made if out is None else write_out(out, made)
        in_place = isinstance(out, ShardedArray) and not replaces and _may_be_filled(out, factor_map, prepared)
        result: ShardedArray = out if in_place else allocate(prepared)
        num_devices = prepared.group.num_devices
        sources = [_on_each_device(x, num_devices) for x in prepared.operands]
        if factor_map.others == "terms":
            sources = [
                _in_first_part(each, x, result._layout) for each, x in zip(sources, prepared.operands, strict=True)
            ]

        def fill(tile: Array, where: TileBoxes) -> None:
            device, boxes = where.device, where.operands
            kernel([_view(each[device], box) for each, box in zip(sources, boxes, strict=True)], tile, where)

        compute(result, fill, prepared, effort)
        if replaces and (out.shape, out.dtype, out._layout) == (result.shape, result.dtype, result._layout):
            out._adopt(result)  # the result's memory is not shared
            return out
        return result if out is None or in_place else write_out(out, result)

    return recorded_as_one(name, operands, work)


class Prepared(NamedTuple):
    """A planned operation and its resharded operands; `combine` combines the parts of a partial result."""

    operands: list[Any]
    plan: Plan
    dtype: np.dtype[Any]
    group: DeviceGroup
    combine: Op


def prepare(
    name: str, factor_map: FactorMap, operands: Sequence[Any], dtype: Any, *, shape: Shape | None = None
) -> Prepared:
    """Plan an operation and reshard its operands; parameters as for :func:`apply`."""
    dtype = np.dtype(dtype)
    placed: list[Any] = []
    sharded: list[ShardedArray] = []
    shapes: list[Shape] = []
    itemsizes: list[int] = []
    layouts: list[Layout | None] = []
    for given in operands:
        x = given
        if isinstance(x, ShardedArray):
            x = settled(x)
            if x._origin is not None and not factor_map.is_elementwise:
                x = materialized(x)  # keeps the combined origin for later uses
            sharded.append(x)
            shapes.append(x._shape)
            itemsizes.append(x._dtype.itemsize)
            layouts.append(x._layout)
        else:
            shapes.append(np.shape(x))
            itemsizes.append(0)
            layouts.append(None)
        placed.append(x)
    group = common_group(name, sharded)
    ops = {x._combine for x in sharded if x._layout.parts.count > 1}
    combine = ops.pop() if len(ops) == 1 else None
    if combine is not None and factor_map.linear:
        factor_map = checked_linear(factor_map, placed)
    key = (factor_map, tuple(shapes), tuple(itemsizes), tuple(layouts), dtype.itemsize)
    chosen = plan(*key, result_shape=shape, combine=combine)
    for number in chosen.moved:
        placed[number] = redistribute(placed[number], chosen.operand_layouts[number])
    return Prepared(placed, chosen, dtype, group, factor_map.combine if factor_map.reduced else combine or Op.SUM)


def allocate(prepared: Prepared) -> ShardedArray:
    """Return uninitialized memory for the result of an operation."""
    layout, shape = prepared.plan.result_layout, prepared.plan.result_shape
    if not layout.is_partial:
        return empty(shape, prepared.dtype, layout, prepared.group)
    buffers = buffers_for(layout, prepared.group, lambda _: fresh(shape, prepared.dtype))
    return ShardedArray._build(buffers, layout, prepared.group, prepared.combine)


def compute(
    result: ShardedArray, work: Callable[[Array, TileBoxes], object], prepared: Prepared, effort: float = 1.0
) -> None:
    """Fill each device's tile of a result; the first of the devices that share a tile's memory fills it."""
    chosen = prepared.plan
    buffers = _on_each_device(result, prepared.group.num_devices)
    devices = chosen.first_devices if result._has_one_buffer_per_part else _computing_devices(buffers, chosen)

    def fill(device: int) -> None:
        where = chosen.places[device]
        work(_view(buffers[device], where.result), where)

    nbytes = _nbytes(result) + sum(map(_nbytes, prepared.operands))
    is_alone = prepared.group.num_devices == 1
    on_devices(fill, devices, int(nbytes * effort) // max(1, len(devices)), is_alone=is_alone)


def arrays_at_once(prepared: Prepared, effort: float = 1.0) -> list[Array] | None:
    """Return the operands' arrays if all tiles may be computed in one call.

    Requires tiles of equal size, shared memory and little work; `effort` as in :func:`apply`.
    """
    if prepared.plan.stacks is None or prepared.group.member is not None or current_mode() != "shared":
        return None
    arrays: list[Array] = []
    for x in prepared.operands:
        array = x._whole if isinstance(x, ShardedArray) else x
        if not isinstance(array, np.ndarray):
            return None
        arrays.append(array)
    return arrays if effort * sum([array.nbytes for array in arrays]) <= INLINE_BYTES else None


def _at_once(kernel: Kernel, prepared: Prepared, effort: float) -> ShardedArray | None:
    arrays, stacks = arrays_at_once(prepared, effort), prepared.plan.stacks
    if arrays is None or stacks is None:
        return None
    _, chosen, dtype, group, combine = prepared
    layout, shape = chosen.result_layout, chosen.result_shape
    shape = shape if layout.parts.count == 1 else (layout.parts.count, *shape)
    where = chosen.places[chosen.first_devices[0]]
    # `on_devices` is not needed: it limits the threads of BLAS, which reductions do not call.
    calls_directly = len(arrays) == 1 or group.num_devices == 1

    def run(arrays: Sequence[Array]) -> Array:
        whole = fresh(shape, dtype)
        *tiles, out = [x.reshape(s.shape).transpose(s.order) for x, s in zip((*arrays, whole), stacks, strict=True)]
        if calls_directly:
            kernel(tiles, out, where)
        else:
            on_devices(lambda _: kernel(tiles, out, where), (where.device,), 0)
        return whole

    return stacked(StackedCall(run, layout, combine), arrays, group)


def _computing_devices(buffers: Sequence[Array | None], chosen: Plan) -> tuple[int, ...]:
    """Return the devices of this process that compute: of the devices that share the memory of a tile, the first."""
    found: dict[tuple[int, int], int] = {}
    for device in chosen.result_layout.holders:
        if buffers[device] is not None:
            found.setdefault((id(buffers[device]), chosen.tile_numbers[device]), device)
    return tuple(found.values())


def write_out(out: Any, result: ShardedArray) -> Any:
    """Write a result to `out` and return `out`; raise TypeError or ValueError if it cannot hold the result."""
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError("output array is read-only")
    np.copyto(np.empty(0, out.dtype), np.empty(0, result.dtype), casting="same_kind")
    if out.shape != result.shape:
        raise ValueError(
            f"out has shape {out.shape}, expected the result's shape {result.shape}: pass an array of that shape"
        )
    out[...] = result if isinstance(out, ShardedArray) else np.asarray(result)
    return out


def _may_be_filled(out: ShardedArray, factor_map: FactorMap, prepared: Prepared) -> bool:
    """Return whether tiles of the result may be computed directly in `out`.

    False if shape, dtype or layout differ, or if an operand overlaps the memory of `out`, unless the operand is `out`
    itself and each element of the result depends only on the same element of `out`.
    """
    chosen = prepared.plan
    if (out.shape, out.dtype, out._layout) != (chosen.result_shape, prepared.dtype, chosen.result_layout):
        return False
    buffers = _buffers(out)
    others = [
        buffer
        for labels, x in zip(factor_map.operands, prepared.operands, strict=True)
        if not (x is out and labels == factor_map.result)
        for buffer in _buffers(x)
    ]
    return not any(np.may_share_memory(buffer, other) for buffer in buffers for other in others)


def _buffers(x: Any) -> list[Array]:
    if isinstance(x, ShardedArray):
        each = _on_each_device(x, x._layout.num_devices)
        return [*{id(buffer): buffer for buffer in each if buffer is not None}.values()]
    return [x] if isinstance(x, np.ndarray) else []


def _nbytes(x: Any) -> int:
    return x.size * x.dtype.itemsize if isinstance(x, (ShardedArray, np.ndarray)) else 0


def tile_of(x: Any, box: Box, device: int) -> Any:
    """Return the box of an operand in the memory of a device; return scalars unchanged."""
    return _view(x._buffer(device) if isinstance(x, ShardedArray) else x, box)


def _on_each_device(x: Any, num_devices: int) -> Sequence[Any]:
    if not isinstance(x, ShardedArray):
        return (x,) * num_devices
    return (x._whole,) * num_devices if x._buffers is None else x._buffers


def _in_first_part(each: Sequence[Any], x: Any, result: Layout) -> Sequence[Any]:
    """Return an operand for each device; if the result is partial but `x` is not, devices of later parts get zeros."""
    if not result.is_partial or (isinstance(x, ShardedArray) and x._layout.is_partial):
        return each
    zero = np.broadcast_to(np.zeros((), x.dtype), x.shape) if hasattr(x, "dtype") else type(x)(0)
    return [buffer if result.parts.tile_of(device) == 0 else zero for device, buffer in enumerate(each)]


def _view(buffer: Any, box: Box) -> Any:
    if box:
        return buffer[box]
    # With the ellipsis, indexing a 0-d array returns an array, not a scalar.
    return buffer[...] if isinstance(buffer, np.ndarray) else buffer
