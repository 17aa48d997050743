"""Runs an operation tile by tile: operands are brought where the plan wants them, each device computes its tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives import Op
from ringlet.sharding.creation import placed_with
from ringlet.sharding.execution.device_threads import INLINE_BYTES, on_devices
from ringlet.sharding.execution.propagation import Plan, Where, plan
from ringlet.sharding.explain import noted_as_one
from ringlet.sharding.layout.device_group import DeviceGroup, common_group
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import Box, Layout
from ringlet.sharding.memory_modes import current_mode
from ringlet.sharding.resharding.device_buffers import empty, fresh, spaces_for
from ringlet.sharding.resharding.reshard import redistribute
from ringlet.sharding.sharded_array import ShardedArray

__all__ = [
    "Kernel",
    "Ready",
    "Where",
    "apply",
    "arrays_at_once",
    "compute",
    "prepare",
    "tile_of",
    "unfilled",
    "written_to",
]

Array = NDArray[Any]


Kernel = Callable[[list[Any], Array, Where], object]


def apply(
    name: str,
    factor_map: FactorMap,
    kernel: Kernel,
    operands: Sequence[Any],
    dtype: Any,
    *,
    out: Any = None,
    shape: tuple[int, ...] | None = None,
    effort: float = 1.0,
    takes_stacks: bool = False,
) -> Any:
    """Run an operation on the tiles of its operands.

    Parameters
    ----------
    name : str
        What reports call it.
    factor_map : FactorMap
    kernel : callable
        ``kernel(tiles, out, where)`` computes one tile: it fills `out`, a view of the result, from the operands' tiles.
        Tiles may be empty. Called in any thread, in any order, once for each tile that memory has of its own.
    operands : sequence of (ShardedArray, ndarray or scalar)
        At least one is a ShardedArray, or `out` is. The others are on every device: they are sliced where they are;
        scalars reach the kernel as they are.
    dtype : dtype
        Of the result.
    out : ShardedArray, ndarray or None
        What to write the result to; of its shape, and returned. May share memory with operands.
    shape : tuple of int or None
        Of the result, where its dimensions have other sizes than those of their factors in the operands, or than 1 if
        they have none.
    effort : float
        How often a tile's bytes are gone over, about: whether threads are worth their wake-up depends on it.
    takes_stacks : bool
        Whether the kernel computes all tiles in one call, each to the bits that it gets by itself, if they are stacked
        along further dimensions before their own, and needs no place: that is how little work is done.

    Returns
    -------
    ShardedArray
        Writable. Partial if a reduced factor is cut, or an operand is partial and the operation linear in it.

    Raises
    ------
    ShardingError
        If operands are on different device groups.

    Examples
    --------
    >>> from ringlet.collectives import Op
    >>> from ringlet.sharding import Sharding, shard
    >>> x = shard(np.arange(6.0).reshape(2, 3), Sharding.tiled((2, 1)))
    >>> rows = FactorMap((("i", "j"),), ("j",), {"i": Op.SUM})
    >>> total = apply("sum", rows, lambda tiles, out, where: tiles[0].sum(0, out=out), [x], x.dtype)
    >>> total._layout.is_partial, np.asarray(total)
    (True, array([3., 5., 7.]))
    """
    operands = placed_with(out, operands)

    def work() -> Any:
        if isinstance(out, ShardedArray):
            out._spaces_to_write()
        ready = prepare(name, factor_map, operands, dtype, shape=shape)
        if takes_stacks and (made := _at_once(kernel, ready, effort)) is not None:
            return made if out is None else written_to(out, made)
        in_place = isinstance(out, ShardedArray) and _may_be_filled(out, factor_map, ready)
        result: ShardedArray = out if in_place else unfilled(ready)
        num_devices = ready.group.num_devices
        sources = [_on_each(x, num_devices) for x in ready.operands]

        def fill(tile: Array, where: Where) -> None:
            device, boxes = where.device, where.operands
            kernel([_view(each[device], box) for each, box in zip(sources, boxes, strict=True)], tile, where)

        compute(result, fill, ready, effort)
        return result if out is None or in_place else written_to(out, result)

    return noted_as_one(name, operands, work)


class Ready(NamedTuple):
    """An operation whose operands are where its plan wants them.

    Attributes
    ----------
    operands : list
        Sharded ones have the plan's layouts.
    plan : Plan
    dtype : dtype
        Of the result.
    group : DeviceGroup
    combine : Op
        How parts of the result combine, if it is partial.
    """

    operands: list[Any]
    plan: Plan
    dtype: np.dtype[Any]
    group: DeviceGroup
    combine: Op


def prepare(
    name: str, factor_map: FactorMap, operands: Sequence[Any], dtype: Any, *, shape: tuple[int, ...] | None = None
) -> Ready:
    """Plan an operation and bring its operands where they have to be; parameters are those of :func:`apply`."""
    dtype = np.dtype(dtype)
    placed: list[Any] = []
    sharded: list[ShardedArray] = []
    shapes: list[tuple[int, ...]] = []
    itemsizes: list[int] = []
    layouts: list[Layout | None] = []
    for given in operands:
        x = given
        if isinstance(x, ShardedArray):
            x = x if x._settled is None else x._settled  # parts that were combined already are not combined again
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
    key = (factor_map, tuple(shapes), tuple(itemsizes), tuple(layouts), dtype.itemsize)
    chosen = plan(*key, result_shape=shape, combine=combine)
    for number in chosen.moved:
        placed[number] = redistribute(placed[number], chosen.operand_layouts[number])
    return Ready(placed, chosen, dtype, group, factor_map.combine if factor_map.reduced else combine or Op.SUM)


def unfilled(ready: Ready) -> ShardedArray:
    """Give memory for the result of an operation, with no values yet."""
    layout, shape = ready.plan.result_layout, ready.plan.result_shape
    if not layout.is_partial:
        return empty(shape, ready.dtype, layout, ready.group)
    spaces = spaces_for(layout, ready.group, lambda _: fresh(shape, ready.dtype))
    return ShardedArray._build(spaces, layout, ready.group, ready.combine)


def compute(result: ShardedArray, work: Callable[[Array, Where], object], ready: Ready, effort: float = 1.0) -> None:
    """Have each device fill its tile of a result; of devices that share memory and have the same tile, the first.

    Parameters
    ----------
    result : ShardedArray
        Of the layout of the plan.
    work : callable
        Fills a tile, given that and its place.
    ready : Ready
    effort : float
        As that of :func:`apply`.
    """
    chosen = ready.plan
    spaces = _on_each(result, ready.group.num_devices)
    devices = chosen.first_devices if result._has_one_space_per_part else _computing(spaces, chosen)

    def fill(device: int) -> None:
        where = chosen.places[device]
        work(_view(spaces[device], where.result), where)

    nbytes = _nbytes(result) + sum(map(_nbytes, ready.operands))
    is_alone = ready.group.num_devices == 1
    on_devices(fill, devices, int(nbytes * effort) // max(1, len(devices)), is_alone=is_alone)


def arrays_at_once(ready: Ready, effort: float = 1.0) -> list[Array] | None:
    """Give the arrays of operands if all tiles may be computed in one call.

    They are if they are all alike, in memory that devices share, and little work, `effort` being that of :func:`apply`.
    """
    if ready.plan.stacks is None or ready.group.member is not None or current_mode() != "shared":
        return None
    arrays: list[Array] = []
    for x in ready.operands:
        array = x._whole if isinstance(x, ShardedArray) else x
        if not isinstance(array, np.ndarray):
            return None
        arrays.append(array)
    return arrays if effort * sum([array.nbytes for array in arrays]) <= INLINE_BYTES else None


def _at_once(kernel: Kernel, ready: Ready, effort: float) -> ShardedArray | None:
    """Compute all tiles in one call, if that may be."""
    arrays, stacks = arrays_at_once(ready, effort), ready.plan.stacks
    if arrays is None or stacks is None:
        return None
    _, chosen, dtype, group, combine = ready
    layout, shape = chosen.result_layout, chosen.result_shape
    count = layout.parts.count
    whole = fresh(shape if count == 1 else (count, *shape), dtype)
    *tiles, out = [x.reshape(s.shape).transpose(s.order) for x, s in zip((*arrays, whole), stacks, strict=True)]

    def fill(device: int) -> None:
        kernel(tiles, out, chosen.places[device])

    on_devices(fill, chosen.first_devices[:1], 0, is_alone=group.num_devices == 1)
    if count == 1:
        return ShardedArray._of_whole(whole, layout, group)
    parts = [*whole]
    return ShardedArray._build([parts[part] for part in layout.parts.tile], layout, group, combine)


def _computing(spaces: Sequence[Array | None], chosen: Plan) -> tuple[int, ...]:
    """Give the devices of this process, of those that share memory and have the same tile the first."""
    found: dict[tuple[int, int], int] = {}
    for device in chosen.result_layout.holders:
        if spaces[device] is not None:
            found.setdefault((id(spaces[device]), chosen.tile_numbers[device]), device)
    return tuple(found.values())


def written_to(out: Any, result: ShardedArray) -> Any:
    """Write a result to the array that it was asked to go to, which NumPy's functions then return.

    Raises
    ------
    TypeError, ValueError
        As NumPy, if the dtype of `out` or its shape does not do.
    """
    np.copyto(np.empty(0, out.dtype), np.empty(0, result.dtype), casting="same_kind")
    if out.shape != result.shape:
        raise ValueError(f"out has shape {out.shape}, and the result {result.shape}: give an array of that shape")
    out[...] = result if isinstance(out, ShardedArray) else np.asarray(result)
    return out


def _may_be_filled(out: ShardedArray, factor_map: FactorMap, ready: Ready) -> bool:
    """Tell whether tiles of the result may be written while others are computed still.

    Not if an operand lies in the same memory, but for one that is `out` itself and of which each element of the result
    needs the same element alone.
    """
    chosen = ready.plan
    if (out.shape, out.dtype, out._layout) != (chosen.result_shape, ready.dtype, chosen.result_layout):
        return False
    spaces = _spaces(out)
    others = [
        space
        for labels, x in zip(factor_map.operands, ready.operands, strict=True)
        if not (x is out and labels == factor_map.result)
        for space in _spaces(x)
    ]
    return not any(np.may_share_memory(space, other) for space in spaces for other in others)


def _spaces(x: Any) -> list[Array]:
    if isinstance(x, ShardedArray):
        each = _on_each(x, x._layout.num_devices)
        return [*{id(space): space for space in each if space is not None}.values()]
    return [x] if isinstance(x, np.ndarray) else []


def _nbytes(x: Any) -> int:
    return x.size * x.dtype.itemsize if isinstance(x, (ShardedArray, np.ndarray)) else 0


def tile_of(x: Any, box: Box, device: int) -> Any:
    """Give the box of an operand that is in place, in the memory of a device; scalars as they are."""
    return _view(x._space(device) if isinstance(x, ShardedArray) else x, box)


def _on_each(x: Any, num_devices: int) -> Sequence[Any]:
    """Give what each device has of an operand."""
    if not isinstance(x, ShardedArray):
        return (x,) * num_devices
    return (x._whole,) * num_devices if x._spaces is None else x._spaces


def _view(space: Any, box: Box) -> Any:
    if box:
        return space[box]
    # The ellipsis has a 0-d array stay an array; a number is no array.
    return space[...] if isinstance(space, np.ndarray) else space
