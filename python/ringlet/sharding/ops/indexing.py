"""Indexing of sharded arrays: slices and numbers are views or moves between neighbours; the rest takes, or gathers."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.execution.array_function_table import gathered
from ringlet.sharding.explain import noted_as_one
from ringlet.sharding.layout.device_group import common_group
from ringlet.sharding.layout.layout import WHOLE, Layout
from ringlet.sharding.resharding.regions import Form, Piece, Run, plan_assignment
from ringlet.sharding.resharding.reshard import settled
from ringlet.sharding.resharding.tile_assembly import fill, note_copies, picked, through, viewed
from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["get_item", "set_item"]

Array = NDArray[Any]


class _Basic(NamedTuple):
    """An index of slices and numbers.

    Attributes
    ----------
    runs : tuple of Run
        What it takes along each dimension.
    key : tuple
        What it then makes of the dimensions: 0 drops one, of which a number took one index, ``slice(None)`` keeps one,
        None makes one.
    """

    runs: tuple[Run, ...]
    key: tuple[int | slice | None, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of what it gives."""
        runs = iter(self.runs)
        counts = [(entry, 1 if entry is None else next(runs).length) for entry in self.key]
        return tuple(count for entry, count in counts if entry != 0)

    def taken_layout(self, layout: Layout) -> Layout:
        """Where values are before dimensions are dropped and made: slices are in as many tiles as what they are of."""
        entries = [entry for entry in self.key if entry is not None]
        if 0 not in entries:
            return layout
        return layout.with_cuts([WHOLE if e == 0 else cut for e, cut in zip(entries, layout.cuts, strict=True)])

    def layout(self, taken: Layout) -> Layout:
        """Where values are in the end, given :meth:`taken_layout`."""
        cuts = iter(taken.cuts)
        placed = [(entry, WHOLE if entry is None else next(cuts)) for entry in self.key]
        return taken.with_cuts([cut for entry, cut in placed if entry != 0])


def get_item(x: ShardedArray, key: Any) -> Any:
    """Give what ``x[key]`` gives.

    Parameters
    ----------
    x : ShardedArray
    key : index
        Slices, numbers, ``None`` and ``...`` keep each dimension in as many tiles as it has, but those of which a
        number takes one index. An array of integers along one dimension is as :func:`numpy.take`. Masks and several
        arrays gather `x`.

    Returns
    -------
    ShardedArray or ndarray
        Values, which are not written to; a plain array where `x` was gathered.

    Raises
    ------
    IndexError
        NumPy's.

    Examples
    --------
    >>> from ringlet.sharding import Sharding, shard
    >>> x = shard(np.arange(12).reshape(6, 2), Sharding.tiled((3, 1)))
    >>> x[::2, 1].shards
    [array([1]), array([5]), array([9])]
    """
    if _is_field(x, key):
        inner = np.empty((), x.dtype)[key].ndim  # NumPy says what is wrong
        return x._derive(lambda space: space[key], x._layout.with_cuts([*x._layout.cuts, *(WHOLE,) * inner]))
    basic = _basic(x.shape, key)
    if basic is None:
        return _advanced(x, key)

    def work() -> ShardedArray:
        taken = picked("slice", x, basic.runs, basic.taken_layout(x._layout))
        if all(isinstance(entry, slice) for entry in basic.key):
            return taken
        key = (*basic.key, ...)
        return taken._derive(lambda space: space[key], basic.layout(taken._layout))

    return noted_as_one("slice", (x,), work)


def set_item(x: ShardedArray, key: Any, value: Any) -> None:
    """Do what ``x[key] = value`` does.

    Parameters
    ----------
    x : ShardedArray
    key : index
        For slices and numbers, and for masks if one value or one row is for all that they choose, each device writes
        what it has. Anything else gathers `x`, and lays out what becomes of it.
    value : array-like
        Brought where it is needed.

    Raises
    ------
    ShardingError
        If `x` is a value taken from another array, which is not written to.
    IndexError, ValueError
        NumPy's.

    Examples
    --------
    >>> from ringlet.sharding import Sharding, shard
    >>> x = shard(np.arange(6), Sharding.tiled((3,)))
    >>> x[1:4] = -1
    >>> x[x > 4] = 9
    >>> x
    ShardedArray(array([ 0, -1, -1, -1,  4,  9]), sharding={devices=[3]<=[3]})
    """
    basic = None if _is_field(x, key) else _basic(x.shape, key)
    if basic is not None:
        noted_as_one("assign", (x, value), lambda: _assign(x, basic, value))
    elif _is_mask(x, key) and _goes_everywhere(value, x.ndim - key.ndim):
        mask = key.reshape(key.shape + (1,) * (x.ndim - key.ndim))
        value = value if hasattr(value, "dtype") else np.asarray(value, x.dtype)  # which may refuse it
        np.copyto(x, value, casting="unsafe", where=mask)  # type: ignore[arg-type]  # dispatched
    else:
        whole = np.array(gathered(_ASSIGNMENT, x))
        whole[gathered(_ASSIGNMENT, key)] = gathered(_ASSIGNMENT, value)
        x[...] = whole


# What warnings call it.
_INDEX = "an index of arrays"
_ASSIGNMENT = "assignment to an index of arrays"


def _basic(shape: tuple[int, ...], key: Any) -> _Basic | None:
    """An index as runs; None if there are arrays in it.

    Raises
    ------
    IndexError, TypeError
        NumPy's.
    """
    entries = _entries(shape, key)
    if entries is None:
        return None
    sizes, runs = iter(shape), []
    later: list[int | slice | None] = []
    for entry in entries:
        if entry is None:
            later.append(None)
        elif isinstance(entry, slice):
            start, stop, step = entry.indices(next(sizes))
            count = len(range(start, stop, step))
            runs.append(Run(start if count else 0, step, count))
            later.append(slice(None))
        else:
            size = next(sizes)
            if not -size <= entry < size:
                _stand_in(shape)[key]
            runs.append(Run(entry % size, 1, 1))
            later.append(0)
    return _Basic(tuple(runs), tuple(later))


def _entries(shape: tuple[int, ...], key: Any) -> list[Any] | None:
    """One for each dimension and each new one: slices, numbers and None."""
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
        else:  # NumPy refuses it, or it is something rare
            _stand_in(shape)[key]
            return None
    missing = len(shape) - sum(entry is not None for entry in entries)
    if missing < 0:
        _stand_in(shape)[key]
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


def _stand_in(shape: tuple[int, ...]) -> Array:
    """An array of a shape that takes no memory."""
    return np.broadcast_to(np.empty((), bool), shape)


def _advanced(x: ShardedArray, key: Any) -> Any:
    """Take along the dimension of the one array of integers in an index, or gather."""
    entries = key if isinstance(key, tuple) else (key,)
    arrays = [place for place, entry in enumerate(entries) if not isinstance(entry, slice) and entry is not Ellipsis]
    if len(arrays) == 1 and _is_array(entries[arrays[0]]):
        place = arrays[0]
        index = entries[place] if isinstance(entries[place], ShardedArray) else np.asarray(entries[place])
        if index.size == 0 and isinstance(entries[place], list):
            index = index.astype(np.intp)
        if index.dtype.kind in "iu":
            axis = place if Ellipsis not in entries[:place] else place - len(entries)
            others = (*entries[:place], slice(None), *entries[place + 1 :])
            if 0 in x.shape:
                _stand_in(x.shape)[gathered(_INDEX, key)]  # take does not ask for each of these
            try:
                return np.take(x[others], index, axis=axis)
            except IndexError:
                _stand_in(x.shape)[gathered(_INDEX, key)]  # NumPy names the axis of `x`
                raise
    return gathered(_INDEX, x)[gathered(_INDEX, key)]


def _is_field(x: ShardedArray, key: Any) -> bool:
    """Tell whether an index names fields of a structured array."""
    names = key if isinstance(key, list) else [key]
    return x.dtype.names is not None and bool(names) and all(isinstance(name, str) for name in names)


def _is_mask(x: ShardedArray, key: Any) -> bool:
    """Tell whether an index is an array of truth values along the first dimensions."""
    return isinstance(key, (np.ndarray, ShardedArray)) and key.dtype == bool and key.shape == x.shape[: key.ndim] != ()


def _goes_everywhere(value: Any, ndim: int) -> bool:
    """Tell whether a value is the same wherever a mask is true, which leaves so many dimensions."""
    return isinstance(value, (int, float, complex, np.generic, np.ndarray, ShardedArray)) and np.ndim(value) <= ndim


def _assign(x: ShardedArray, basic: _Basic, value: Any) -> None:
    """Write a value where an index of slices and numbers says."""
    value = _aligned(_as_value(value, x.dtype, basic), basic)
    if isinstance(value, ShardedArray):
        common_group("assign", [x, value])
        value = settled(value)
    spaces = x._spaces_to_write()
    start = (0,) * x.ndim
    runs = zip(value.shape, basic.runs, strict=True)
    piece = Piece(0, start, tuple(Run(0, int(size == run.length), run.length) for size, run in runs))
    everywhere = Layout.replicated(x._layout.num_devices, x.ndim)
    layout = value._layout if isinstance(value, ShardedArray) else everywhere
    target, copies = plan_assignment(
        piece,
        Form(tuple(value.shape), value.dtype, layout),
        Piece(0, start, basic.runs),
        Form(x.shape, x.dtype, x._layout),
    )
    views = {id(space): viewed(space, basic.runs) for space in spaces if space is not None}
    places = [None if space is None else views[id(space)] for space in spaces]
    fill(x._group, places, target, [through(value, piece, len(places))], copies)
    note_copies("assign", value, x, copies)


def _as_value(value: Any, dtype: np.dtype[Any], basic: _Basic) -> Any:
    """A value as an array; what is none yet becomes one as NumPy has it that is written to one of a dtype."""
    if isinstance(value, (ShardedArray, np.ndarray)):
        return value if isinstance(value, ShardedArray) else np.asarray(value)
    if isinstance(value, np.generic) or (dtype.hasobject and basic.shape == ()):  # numbers that do not fit are refused
        held = np.empty((), dtype)
        held[()] = value
        return held
    return np.asarray(value, dtype)


def _aligned(value: Any, basic: _Basic) -> Any:
    """Give a value the dimensions of what is written to, of size 1 where it is the same along them.

    Raises
    ------
    ValueError
        NumPy's, if it cannot be broadcast.
    """
    surplus = value.ndim - len(basic.shape)
    fits = all(size == 1 for size in value.shape[: max(surplus, 0)]) and all(
        size in (1, count) for size, count in zip(value.shape[::-1], basic.shape[::-1], strict=False)
    )
    if not fits:
        strides = (0,) * len(basic.shape)
        np.lib.stride_tricks.as_strided(np.empty(1, bool), basic.shape, strides)[...] = _stand_in(value.shape)
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
