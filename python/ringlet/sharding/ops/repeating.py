"""Functions whose results are made of runs of one array along each dimension: roll, tile, repeat, pad."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.shape_inference import shaped, small
from ringlet.sharding.resharding.regions import Form, Piece, Run
from ringlet.sharding.resharding.reshard import settled
from ringlet.sharding.resharding.tile_assembly import as_own, assembled, full_runs
from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["pad", "repeat", "roll", "tile"]

# Results of more pieces are not worth a plan: arrays are gathered for them.
_MOST_PIECES = 1024


def _made_of(name: str, x: ShardedArray, runs: Sequence[Sequence[Run]]) -> Any:
    """An array that has these runs of another one after each other along each dimension, in as many tiles."""
    x = settled(x)
    runs = [[run for run in along if run.length] for along in runs]
    count = int(np.prod([len(along) for along in runs], dtype=float))
    if count > _MOST_PIECES:
        return NotImplemented
    starts = [[0, *itertools.accumulate(run.length for run in along)] for along in runs]
    pieces = [
        Piece(0, tuple(start[i] for start, i in zip(starts, places, strict=True)), chosen)
        for places, chosen in zip(
            itertools.product(*(range(len(along)) for along in runs)), itertools.product(*runs), strict=True
        )
    ]
    return assembled(name, [x], pieces, [Form(tuple(start[-1] for start in starts), x.dtype, x._layout)])


def _runs_of(indices: NDArray[np.intp]) -> list[Run]:
    """Indices as runs: as long as their distance stays the same.

    Examples
    --------
    >>> _runs_of(np.array([3, 3, 3, 4, 5, 2]))
    [Run(start=3, step=0, length=3), Run(start=4, step=1, length=2), Run(start=2, step=1, length=1)]
    """
    runs: list[Run] = []
    for index in indices.tolist():
        if runs:
            start, step, count = runs[-1]
            if count == 1 and index - start in (-1, 0, 1):
                runs[-1] = Run(start, index - start, 2)
                continue
            if count > 1 and index == start + step * count:
                runs[-1] = Run(start, step, count + 1)
                continue
        runs.append(Run(index, 1, 1))
    return runs


@implements(np.roll)
def roll(a: ShardedArray, shift: Any, axis: Any = None) -> Any:
    """Do what :func:`numpy.roll` does: what leaves a tile goes to the next one.

    Examples
    --------
    >>> from ringlet.sharding import Sharding, shard
    >>> roll(shard(np.arange(6), Sharding.tiled((3,))), 1).shards
    [array([5, 0]), array([1, 2]), array([3, 4])]
    """
    if axis is None:
        flat: Any = roll(a.ravel(), shift, 0)
        return flat if flat is NotImplemented else as_own(flat.reshape(a.shape))
    np.roll(shaped((1,) * a.ndim), shift, axis)  # NumPy says what is wrong
    shifts = [0] * a.ndim
    for by, along in np.broadcast(shift, axis):
        shifts[operator.index(along) % a.ndim] += int(by)
    runs = []
    for size, total in zip(a.shape, shifts, strict=True):
        by = total % size if size else 0
        runs.append([Run(size - by, 1, by), Run(0, 1, size - by)])
    return _made_of("roll", a, runs)


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:  # noqa: N803  # NumPy's name
    """Do what :func:`numpy.tile` does."""
    if not isinstance(A, ShardedArray):
        return NotImplemented
    times = tuple(reps) if np.iterable(reps) else (reps,)
    if not all(isinstance(count, (int, np.integer)) and count >= 0 for count in times):
        np.tile(shaped(small(A)[1]), times)  # NumPy says what is wrong
        return NotImplemented
    x = A[(None,) * (len(times) - A.ndim) + (...,)]
    times = (1,) * (x.ndim - len(times)) + times
    return _made_of("tile", x, [[run] * int(count) for run, count in zip(full_runs(x.shape), times, strict=True)])


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Do what :func:`numpy.repeat` does: rows that are to be repeated equally often stay where they are."""
    if not isinstance(a, ShardedArray) or isinstance(repeats, ShardedArray):
        return NotImplemented
    x: Any = np.ravel(a) if axis is None or a.ndim == 0 else a
    along = 0 if axis is None else operator.index(axis)
    times = np.asarray(repeats, getattr(repeats, "dtype", np.intp))  # as NumPy has it, also of 1.5
    np.repeat(np.empty(0), np.empty(0, times.dtype))  # raises for counts that are not whole, and then for an axis
    np.repeat(shaped((1,) * x.ndim), 1, along)
    along %= x.ndim
    if times.size != 1:
        runs = [[run] for run in full_runs(x.shape)]
        runs[along] = _runs_of(np.repeat(np.arange(x.shape[along]), times))  # NumPy says what is wrong with them
        return _made_of("repeat", x, runs)
    np.repeat(shaped(small(x)[1]), times, along)
    count = max(0, int(times.reshape(())))
    wider = np.expand_dims(x, along + 1)
    wider = np.broadcast_to(wider, (*x.shape[: along + 1], count, *x.shape[along + 1 :]))
    merged = (*x.shape[:along], x.shape[along] * count, *x.shape[along + 1 :])
    return as_own(np.reshape(wider, merged))  # type: ignore[arg-type]  # dispatched


@implements(np.pad)
def pad(array: ShardedArray, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """Do what :func:`numpy.pad` does; modes that compute what they fill in gather.

    Returns
    -------
    ShardedArray
        In as many tiles as `array` along each dimension: values move between neighbours.

    Examples
    --------
    >>> from ringlet.sharding import Sharding, shard
    >>> pad(shard(np.arange(4), Sharding.tiled((2,))), 1, mode="wrap").shards
    [array([3, 0, 1]), array([2, 3, 0])]
    """
    try:
        given = np.asarray(pad_width)
        widths = np.broadcast_to(given, (array.ndim, 2)).tolist()
    except (TypeError, ValueError):
        return NotImplemented
    is_whole = given.dtype.kind == "i" and given.min(initial=0) >= 0
    if is_whole and mode == "constant" and not kwargs.keys() - {"constant_values"}:
        return _padded_by_values(settled(array), widths, kwargs.get("constant_values", 0))
    if not is_whole or kwargs or mode not in ("edge", "reflect", "symmetric", "wrap"):
        return NotImplemented
    indices = [np.pad(np.arange(size), pair, mode) for size, pair in zip(array.shape, widths, strict=True)]
    return _made_of("pad", array, [_runs_of(along) for along in indices])


def _padded_by_values(x: ShardedArray, widths: list[list[int]], values: Any) -> ShardedArray:
    """The array, and along each dimension a slab before and after it, which later dimensions go round."""
    values = np.broadcast_to(np.asarray(values), (x.ndim, 2))
    shape = tuple(size + before + after for size, (before, after) in zip(x.shape, widths, strict=True))
    operands: list[Any] = [x]
    pieces = [Piece(0, tuple(before for before, _ in widths), full_runs(x.shape))]
    for d, pair in enumerate(widths):
        for side, width in enumerate(pair):
            offset = [0] * d + [0 if side == 0 else shape[d] - width] + [before for before, _ in widths[d + 1 :]]
            sizes = [*shape[:d], width, *x.shape[d + 1 :]]
            pieces.append(Piece(len(operands), tuple(offset), tuple(Run(0, 0, size) for size in sizes)))
            operands.append(np.full((1,) * x.ndim, values[d, side], x.dtype))
    return assembled("pad", operands, pieces, [Form(shape, x.dtype, x._layout)])
