"""Pooling kernel: reduction of the windows of one tile, dimension by dimension, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.sharding.halo.cache_blocks import blocks, filled, tap_slices, wide
from ringlet.sharding.halo.windows import Windows
from ringlet.sharding.layout.layout import Array

__all__ = ["choice_gradient", "identity_of", "reduce_windows"]


_BLOCK_BYTES = 256 << 10


def identity_of(function: Any, dtype: np.dtype[Any]) -> Any:
    """Return the identity of a function; ValueError if it has none."""
    if function in (np.maximum, np.minimum, np.fmax, np.fmin):
        is_least = function in (np.maximum, np.fmax)
        if dtype.kind in "iu":
            bounds = np.iinfo(dtype)
            return int(bounds.min if is_least else bounds.max)
        return not is_least if dtype.kind == "b" else -np.inf if is_least else np.inf
    if not isinstance(function, np.ufunc) or (function.nin, function.nout) != (2, 1) or function.identity is None:
        raise ValueError(
            f"windows cannot be reduced with {function}, which has no identity to pad with: pass a binary function "
            "with an identity, such as np.add, np.maximum, np.minimum, np.multiply or np.logical_or"
        )
    return function.identity


def reduce_windows(x: Array, out: Array, windows: Windows, function: np.ufunc) -> None:
    """Fill a tile of outputs with the reductions of their windows, computed in its dtype.

    `high` of a window does not matter; :func:`identity_of` accepts the function.
    """
    identity = identity_of(function, out.dtype)
    if not x.size or not all(window.size for window in windows):
        out[...] = identity
        return
    dtype = wide(out.dtype)
    for block in blocks(x.shape, out.shape, windows, _BLOCK_BYTES // dtype.itemsize):
        out[block.outputs] = _reduced(filled(x, block, dtype, identity), block.counts, windows, function)


def _reduced(part: Array, counts: tuple[int, ...], windows: Windows, function: np.ufunc) -> Array:
    """Reduce along one dimension after another."""
    for axis, (window, count) in enumerate(zip(windows, counts, strict=True)):
        before = (slice(None),) * axis
        views = [part[before + seen] for _, seen in tap_slices((window,), (count,))]
        if len(views) == 1:
            part = views[0]
            continue
        part = function(views[0], views[1], out=np.empty_like(views[0]), casting="unsafe")
        for view in views[2:]:
            function(part, view, out=part, casting="unsafe")
    return part


def choice_gradient(
    x: Array, cotangent: Array, gradient: Array, windows: Windows, *, function: np.ufunc, begins: tuple[int, ...]
) -> None:
    """Fill a tile of the input's gradient where windows are reduced to one of their elements, by maximum or minimum.

    The gradient belongs to the first element, in row-major order, that equals the result: where that is NaN, the first
    NaN. `x` has the inputs of the windows in `cotangent`, the gradient of the outputs whose windows overlap the tile,
    which begins in `x` at `begins`.
    """
    gradient[...] = 0
    if not x.size or not all(window.size for window in windows):
        return
    dtype = wide(x.dtype)
    identity = identity_of(function, dtype)
    for block in blocks(x.shape, cotangent.shape, windows, _BLOCK_BYTES // dtype.itemsize):
        places = filled(x, block, dtype, identity)
        given = cotangent[block.outputs]
        best = _reduced(places, block.counts, windows, function)
        to_places, is_free = np.zeros(block.places, gradient.dtype), np.ones(block.counts, bool)
        has_nan = bool(np.not_equal(best, best).any())
        for _, seen in tap_slices(windows, block.counts):
            is_best = places[seen] == best
            if has_nan:  # NaN is not equal to itself
                is_best |= np.not_equal(places[seen], places[seen])
            is_chosen = is_free & is_best
            np.add(to_places[seen], given, out=to_places[seen], where=is_chosen)
            is_free &= ~is_chosen
        _add_shared(to_places[block.target], tuple(side.start for side in block.source), gradient, begins)


def _add_shared(part: Array, starts: tuple[int, ...], total: Array, begins: tuple[int, ...]) -> None:
    """Add the overlap of two parts that begin at different positions."""
    ours, theirs = [], []
    for start, length, begin, size in zip(starts, part.shape, begins, total.shape, strict=True):
        first, last = max(start, begin), min(start + length, begin + size)
        if first >= last:
            return
        ours.append(slice(first - begin, last - begin))
        theirs.append(slice(first - start, last - start))
    total[tuple(ours)] += part[tuple(theirs)]
