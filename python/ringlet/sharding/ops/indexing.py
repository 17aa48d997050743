"""Indexing of sharded arrays, and assignment to an index, with slices, numbers, masks and arrays of integers."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ringlet.sharding.execution.array_function_table import gathered
from ringlet.sharding.execution.device_threads import INLINE_BYTES
from ringlet.sharding.execution.shape_inference import shape_probe
from ringlet.sharding.explain_operations import is_recording, recorded_as_one
from ringlet.sharding.layout.device_group import common_group
from ringlet.sharding.layout.layout import WHOLE, Layout, Shape
from ringlet.sharding.ops.scatter import assign_at
from ringlet.sharding.ops.selection import select
from ringlet.sharding.resharding.pencils import all_gathered, rows_of
from ringlet.sharding.resharding.regions import ArraySpec, IndexRange, Region, plan_assignment
from ringlet.sharding.resharding.reshard import materialized
from ringlet.sharding.resharding.tile_assembly import fill, range_view, record_copies, region_views, select_ranges
from ringlet.sharding.sharded_array import ShardedArray
from ringlet.values.operator_proxy import plain


class _Basic(NamedTuple):
    """A basic index, of slices, integers and None.

    `ranges` selects elements in each dimension; `key` is then applied to the result: 0 drops a dimension that an
    integer indexes, ``slice(None)`` keeps a dimension, None inserts one.
    """

    ranges: tuple[IndexRange, ...]
    key: tuple[int | slice | None, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        ranges = iter(self.ranges)
        counts = [(entry, 1 if entry is None else next(ranges).length) for entry in self.key]
        return tuple(count for entry, count in counts if entry != 0)

    def taken_layout(self, layout: Layout) -> Layout:
        """Return the layout before dimensions are dropped and inserted: slices keep the number of tiles."""
        entries = [entry for entry in self.key if entry is not None]
        if 0 not in entries:
            return layout
        return layout.with_cuts([WHOLE if e == 0 else cut for e, cut in zip(entries, layout.cuts, strict=True)])

    def layout(self, taken: Layout) -> Layout:
        cuts = iter(taken.cuts)
        placed = [(entry, WHOLE if entry is None else next(cuts)) for entry in self.key]
        return taken.with_cuts([cut for entry, cut in placed if entry != 0])


def get_item(x: ShardedArray, key: Any) -> Any:
    """Implement ``x[key]``; indices without arrays return read-only arrays, or an element of an array of objects.

    Slices, numbers, ``None`` and ``...`` keep the number of tiles along each dimension, except dimensions that a number
    indexes. Arrays of integers have the effect of :func:`numpy.take`; a mask selects elements on each device.
    """
    if _is_field(x, key):
        inner = np.empty((), x.dtype)[key].ndim  # raises NumPy's error for an unknown field
        return x._derive(lambda buffer: buffer[key], x._layout.with_cuts([*x._layout.cuts, *(WHOLE,) * inner]))
    entries, kinds = _kinds_of(key)
    is_shared = x._whole is not None and x._group.member is None and not is_recording()
    if is_shared and (layout := _view_layout(x._layout, kinds)) is not None:
        # With the ellipsis, an index that leaves no dimension returns an array.
        index = key if entries and (int not in kinds or Ellipsis in entries) else (*entries, ...)
        return _element(x._derive(lambda whole: whole[index], layout), kinds)
    basic = _basic(x.shape, key)
    if basic is None:
        return _advanced(x, key)

    def work() -> ShardedArray:
        taken = select_ranges("slice", x, basic.ranges, basic.taken_layout(x._layout))
        if all(isinstance(entry, slice) for entry in basic.key):
            return taken
        key = (*basic.key, ...)
        return taken._derive(lambda buffer: buffer[key], basic.layout(taken._layout))

    return _element(recorded_as_one("slice", (x,), work), kinds)


def _element(found: ShardedArray, kinds: tuple[type, ...]) -> Any:
    """Return `found`; for one element of an array of objects, the object itself unless the index has an ellipsis."""
    return found.item() if found._dtype.kind == "O" and not found._shape and type(...) not in kinds else found


def set_item(x: ShardedArray, key: Any, value: Any) -> None:
    """Implement ``x[key] = value``.

    For slices and numbers, and for masks with one value or row for all selected elements, each device writes to its own
    tile. Other indices and values are sent to all devices, unless mask and values are sharded. For fields, the whole
    array is gathered.
    """
    if _assigned_at_once(x, key, value):
        return
    basic = None if _is_field(x, key) else _basic(x.shape, key)
    if basic is not None:
        recorded_as_one("assign", (x, value), lambda: _assign(x, basic, _as_value(value, x.dtype, basic, key)))
    elif _is_mask(x, key) and _is_uniform(value, x.ndim - key.ndim):
        value = value if hasattr(value, "dtype") else np.asarray(value, x.dtype)
        recorded_as_one("assign", (x, value), lambda: _assign_where(x, key, value))
    elif _is_field(x, key):
        whole = np.array(gathered(_ASSIGNMENT, x))
        whole[gathered(_ASSIGNMENT, key)] = gathered(_ASSIGNMENT, value)
        x[...] = whole
    else:
        recorded_as_one("assign", (x, value), lambda: assign_at(x, key, value))


def _assign_where(x: ShardedArray, mask: ShardedArray, value: Any) -> None:
    mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
    np.copyto(x, value, casting="unsafe", where=mask)  # type: ignore[arg-type]  # dispatched


# Names of the operations in warnings.
_INDEX = "an index of arrays"
_ASSIGNMENT = "assignment to an index of arrays"


# Types of index entries that NumPy accepts in any combination, each with an example.
_SIMPLE: dict[type, Any] = {slice: slice(None), int: 0, type(None): None, type(...): ...}


def _kinds_of(key: Any) -> tuple[tuple[Any, ...], tuple[type, ...]]:
    entries = key if type(key) is tuple else (key,)
    return entries, tuple(map(type, entries))


@lru_cache(maxsize=1024)
def _view_layout(layout: Layout, kinds: tuple[type, ...]) -> Layout | None:
    """Return the layout of an array indexed by entries of these types; None for types not in `_SIMPLE`."""
    is_simple = _SIMPLE.keys() >= {*kinds}
    basic = _basic((1,) * layout.ndim, tuple([_SIMPLE[kind] for kind in kinds])) if is_simple else None
    return None if basic is None else basic.layout(basic.taken_layout(layout))


def _basic(shape: Shape, key: Any) -> _Basic | None:
    """Convert an index to ranges, or raise NumPy's error; None for an index with arrays or of a rare form."""
    entries = _entries(shape, key)
    if entries is None:
        return None
    sizes, ranges = iter(shape), []
    later: list[int | slice | None] = []
    for entry in entries:
        if entry is None:
            later.append(None)
        elif isinstance(entry, slice):
            start, stop, step = entry.indices(next(sizes))
            count = len(range(start, stop, step))
            ranges.append(IndexRange(start if count else 0, step, count))
            later.append(slice(None))
        else:
            size = next(sizes)
            if not -size <= entry < size:
                shape_probe(shape)[key]
            ranges.append(IndexRange(entry % size, 1, 1))
            later.append(0)
    return _Basic(tuple(ranges), tuple(later))


def _entries(shape: Shape, key: Any) -> list[Any] | None:
    """Return a slice, number or None for each old and new dimension; None for indices with arrays or of rare forms."""
    entries: list[Any] = []
    ellipsis = None
    for entry in key if isinstance(key, tuple) else (key,):
        if entry is Ellipsis and ellipsis is None:
            ellipsis = len(entries)
        elif entry is None or isinstance(entry, slice):
            entries.append(entry)
        elif (number := _number(entry)) is not None:
            entries.append(number)
        elif _is_array(entry):
            return None
        else:  # raises NumPy's error, unless the index has a valid but rare form
            shape_probe(shape)[key]
            return None
    missing = len(shape) - sum(entry is not None for entry in entries)
    if missing < 0:
        shape_probe(shape)[key]
    place = len(entries) if ellipsis is None else ellipsis
    entries[place:place] = [slice(None)] * missing
    return entries


def _number(entry: Any) -> int | None:
    if isinstance(entry, (bool, np.bool_, list, tuple)) or getattr(entry, "ndim", 0) != 0:
        return None
    if getattr(getattr(entry, "dtype", None), "kind", "i") not in "iu":
        return None
    try:
        return operator.index(entry)
    except TypeError:
        return None


def _is_array(entry: Any) -> bool:
    return isinstance(entry, (np.ndarray, ShardedArray, list, bool, np.bool_)) or hasattr(entry, "__array__")


def _advanced(x: ShardedArray, key: Any) -> Any:
    """Return the elements at an index with arrays: take along one dimension, select by a mask, or take flat indices."""
    given = key if isinstance(key, tuple) else (key,)
    entries: list[Any] = [list(entry) if isinstance(entry, tuple) else entry for entry in given]
    arrays = [place for place, entry in enumerate(entries) if not _is_slice(entry) and _is_array(entry)]
    if not arrays:
        return gathered(_INDEX, x)[gathered(_INDEX, key)]
    if 0 in x.shape:  # the result has no elements
        found = shape_probe(x.shape)[tuple(map(all_gathered, entries))]
        return np.empty_like(x, shape=found.shape)
    for place in arrays:
        entries[place] = plain(entries[place])
        if not isinstance(entries[place], ShardedArray):
            is_empty = isinstance(entries[place], list) and not np.size(entries[place])
            entries[place] = np.asarray(entries[place], np.intp if is_empty else None)
    others = [entry for place, entry in enumerate(entries) if place not in arrays and not _is_slice(entry)]
    are_numbers = all(entry is None or _number(entry) is not None for entry in others)
    if not are_numbers or any(entries[place].dtype.kind not in "iub" for place in arrays):
        shape_probe(x.shape)[gathered(_INDEX, key)]  # raises NumPy's error
    if len(entries) == 1 and _is_mask(x, entries[0]):
        return select(x, entries[0])
    if len(arrays) == 1 and entries[arrays[0]].dtype.kind in "iu" and sum(map(_is_slice, entries)) == len(entries) - 1:
        place = arrays[0]
        axis = place if not any(entry is Ellipsis for entry in entries[:place]) else place - len(entries)
        rows = (*entries[:place], slice(None), *entries[place + 1 :])
        taken = x[rows]
        if 0 in taken.shape:
            shape_probe(x.shape)[tuple(map(all_gathered, entries))]  # may raise NumPy's error, unlike take
        try:
            return np.take(taken, entries[place], axis=axis)
        except IndexError:
            shape_probe(x.shape)[gathered(_INDEX, key)]  # raises NumPy's error, which names the axis of `x`
            raise
    return _taken_at(x, entries, key)


def _as_places(entry: Any) -> Any:
    return entry.astype(np.intp, copy=False) if hasattr(entry, "astype") else entry


def _is_slice(entry: Any) -> bool:
    return entry is Ellipsis or isinstance(entry, slice)


def _taken_at(x: ShardedArray, entries: list[Any], key: Any) -> Any:
    """Merge the dimensions that arrays index, and take along the merged dimension; order dimensions as NumPy does."""
    spread: list[Any] = []
    if any(getattr(entry, "dtype", None) == np.dtype(bool) for entry in entries):
        shape_probe(x.shape)[tuple(map(all_gathered, entries))]  # raises NumPy's error if a mask has the wrong shape
    for entry in entries:  # masks become the indices of their true elements; numbers become 0-d arrays
        if getattr(getattr(entry, "dtype", None), "kind", "") == "b":
            if not entry.ndim:
                return gathered(_INDEX, x)[gathered(_INDEX, key)]
            spread.extend(np.nonzero(entry))
        else:
            number = _number(entry)
            spread.append(np.asarray(number) if number is not None else _as_places(entry))
    used = sum(entry is not None and entry is not Ellipsis for entry in spread)
    place = next((n for n, entry in enumerate(spread) if entry is Ellipsis), len(spread))
    spread[place : place + 1] = [slice(None)] * (x.ndim - used)
    if used > x.ndim:
        shape_probe(x.shape)[gathered(_INDEX, key)]
    basic = tuple(entry if entry is None or isinstance(entry, slice) else slice(None) for entry in spread)
    indexed = [n for n, entry in enumerate(spread) if entry is not None and not isinstance(entry, slice)]
    taken = x[basic]
    sizes = tuple(taken.shape[n] for n in indexed)
    is_adjacent = indexed == list(range(indexed[0], indexed[0] + len(indexed)))
    rows = np.moveaxis(taken, indexed, range(len(indexed)))
    indices = [spread[n] for n in indexed]
    try:
        np.broadcast_shapes(*map(np.shape, indices))
    except ValueError:
        shape_probe(x.shape)[gathered(_INDEX, key)]  # raises NumPy's error, which is an IndexError
    flat: Any = 0
    for size, index in zip(sizes, indices, strict=True):
        if bool(np.any((index < -size) | (index >= size))):
            shape_probe(x.shape)[gathered(_INDEX, key)]
        flat = flat * size + np.where(index < 0, index + size, index)
    found = np.take(rows_of(rows, len(indexed)), flat, axis=0)
    first = indexed[0] if is_adjacent else 0
    return np.moveaxis(found, range(np.ndim(flat)), range(first, first + np.ndim(flat)))


def _is_field(x: ShardedArray, key: Any) -> bool:
    if x._dtype.names is None:
        return False
    names = key if isinstance(key, list) else [key]
    return bool(names) and all(isinstance(name, str) for name in names)


def _is_mask(x: ShardedArray, key: Any) -> bool:
    return isinstance(key, (np.ndarray, ShardedArray)) and key.dtype == bool and key.shape == x.shape[: key.ndim] != ()


def _is_uniform(value: Any, ndim: int) -> bool:
    """Return whether a value is the same for all items, of `ndim` dimensions, that a mask selects."""
    return isinstance(value, (int, float, complex, np.generic, np.ndarray, ShardedArray)) and np.ndim(value) <= ndim


def _assign(x: ShardedArray, basic: _Basic, value: Any) -> None:
    value = _aligned(value, basic)
    if isinstance(value, ShardedArray):
        common_group("assign", [x, value])
        value = materialized(value)
    buffers = x._writable_buffers()
    start = (0,) * x.ndim
    ranges = zip(value.shape, basic.ranges, strict=True)
    piece = Region(
        0,
        start,
        tuple(IndexRange(0, int(size == index_range.length), index_range.length) for size, index_range in ranges),
    )
    all_gathered = Layout.replicated(x._layout.num_devices, x.ndim)
    layout = value._layout if isinstance(value, ShardedArray) else all_gathered
    target, copies = plan_assignment(
        piece,
        ArraySpec(tuple(value.shape), value.dtype, layout),
        Region(0, start, basic.ranges),
        ArraySpec(x.shape, x.dtype, x._layout),
    )
    views = {id(buffer): range_view(buffer, basic.ranges) for buffer in buffers if buffer is not None}
    places = [None if buffer is None else views[id(buffer)] for buffer in buffers]
    fill(x._group, places, target, [region_views(value, piece, len(places))], copies)
    record_copies("assign", value, x, copies)


def _assigned_at_once(x: ShardedArray, key: Any, value: Any) -> bool:
    """Assign in one call if the work is small and devices share both arrays; return whether this was possible."""
    entries, kinds = _kinds_of(key)
    if not _SIMPLE.keys() >= {*kinds}:
        return False
    if type(value) is ShardedArray:
        if value._whole is None or value._group != x._group:
            return False
    elif type(value) not in (np.ndarray, float, int, bool, complex):
        return False
    if x._whole is None or x._group.member is not None or is_recording():
        return False
    if x._whole[key if Ellipsis in entries else (*entries, ...)].nbytes > INLINE_BYTES:
        return False
    x._writable_buffers()  # separates arrays that share memory; must precede reading `value`
    x._whole[key] = value._whole if type(value) is ShardedArray else value
    return True


def _as_value(value: Any, dtype: np.dtype[Any], basic: _Basic, key: Any) -> Any:
    """Convert a value to an array, as NumPy does when it is assigned to an array of a dtype."""
    if isinstance(value, (ShardedArray, np.ndarray)) and (
        basic.shape or not value.ndim or type(...) in _kinds_of(key)[1]
    ):
        return value if isinstance(value, ShardedArray) else np.asarray(value)
    # Unlike conversion, assignment refuses NaN as an integer, and sequences as one element that is not an object.
    if isinstance(value, np.generic) or not basic.shape:
        element = np.empty((), dtype)
        element[()] = all_gathered(value)
        return element
    return np.asarray(value, dtype)


def _aligned(value: Any, basic: _Basic) -> Any:
    """Reshape a value to its destination's dimensions, with size 1 for broadcast dimensions, or raise NumPy's error."""
    surplus = value.ndim - len(basic.shape)
    fits = all(size == 1 for size in value.shape[: max(surplus, 0)]) and all(
        size in (1, count) for size, count in zip(value.shape[::-1], basic.shape[::-1], strict=False)
    )
    if not fits:
        strides = (0,) * len(basic.shape)
        np.lib.stride_tricks.as_strided(np.empty(1, bool), basic.shape, strides)[...] = shape_probe(value.shape)
    key: list[Any] = [0] * max(surplus, 0)
    missing = max(-surplus, 0)
    for entry in basic.key:
        is_there = missing <= 0
        missing -= entry != 0
        if entry == 0:
            key.append(None)
        elif entry is not None:
            key.append(slice(None) if is_there else None)
        elif is_there:
            key.append(0)
    key.append(...)
    return value[tuple(key)]
