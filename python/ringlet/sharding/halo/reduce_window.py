"""Reductions of windows and their gradients, for one tile and for sharded arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.collectives import Op
from ringlet.sharding.halo.cache_blocks import blocks, filled, tap_slices, wide
from ringlet.sharding.halo.halo_apply import apply_with_halo, as_operand, check_cotangent
from ringlet.sharding.halo.windows import (
    POINTWISE,
    Needs,
    Numbers,
    Padding,
    Windows,
    counted,
    needs_of,
    per_dimension,
    relative_windows,
    windows_of,
)
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import Array, Box, Shape
from ringlet.sharding.resharding.partial_combine import identity

_BLOCK_BYTES = 256 << 10


def identity_of(function: Any, dtype: np.dtype[Any]) -> Any:
    """Return the identity of a function; raise ValueError if it has none."""
    if function in (np.maximum, np.minimum, np.fmax, np.fmin):
        return identity(Op.MAX if function in (np.maximum, np.fmax) else Op.MIN, dtype)
    if not isinstance(function, np.ufunc) or (function.nin, function.nout) != (2, 1) or function.identity is None:
        raise ValueError(
            f"windows cannot be reduced with {function}, which has no identity to pad with: pass a binary function "
            "with an identity, such as np.add, np.maximum, np.minimum, np.multiply or np.logical_or"
        )
    return function.identity


def reduce_windows(x: Array, out: Array, windows: Windows, function: np.ufunc) -> None:
    """Fill a tile of outputs with the reductions of their windows, computed in the dtype of `out`.

    `high` of a window is not used. The function must have an identity.
    """
    identity = identity_of(function, out.dtype)
    if not x.size or not all(window.size for window in windows):
        out[...] = identity
        return
    dtype = wide(out.dtype)
    for block in blocks(x.shape, out.shape, windows, _BLOCK_BYTES // dtype.itemsize):
        out[block.outputs] = _reduced(filled(x, block, dtype, identity), block.counts, windows, function)


def _reduced(part: Array, counts: tuple[int, ...], windows: Windows, function: np.ufunc) -> Array:
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
    """Fill a tile of the input's gradient for maximum or minimum, which select one element of each window.

    The first element in row-major order that equals the result receives the gradient; if the result is NaN, the first
    NaN does. `cotangent` is the gradient of the outputs whose windows overlap the tile, `x` has the inputs of these
    windows, and the tile begins in `x` at `begins`.
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
            if has_nan:  # NaN does not compare equal
                is_best |= np.not_equal(places[seen], places[seen])
            is_chosen = is_free & is_best
            np.add(to_places[seen], given, out=to_places[seen], where=is_chosen)
            is_free &= ~is_chosen
        _add_shared(to_places[block.target], tuple(side.start for side in block.source), gradient, begins)


def _add_shared(part: Array, starts: tuple[int, ...], total: Array, begins: tuple[int, ...]) -> None:
    ours, theirs = [], []
    for start, length, begin, size in zip(starts, part.shape, begins, total.shape, strict=True):
        first, last = max(start, begin), min(start + length, begin + size)
        if first >= last:
            return
        ours.append(slice(first - begin, last - begin))
        theirs.append(slice(first - start, last - start))
    total[tuple(ours)] += part[tuple(theirs)]


# Functions that may reduce windows before the parts of an array are combined, and the combining operations.
_LINEAR_OPS = {np.add: Op.SUM, np.maximum: Op.MAX, np.minimum: Op.MIN, np.multiply: Op.PROD}


def reduce_window(
    x: Any,
    function: np.ufunc,
    window_dimensions: Numbers,
    window_strides: Numbers = 1,
    *,
    padding: Padding = "VALID",
    base_dilation: Numbers = 1,
    window_dilation: Numbers = 1,
) -> Any:
    """Reduce each window of an array to one element.

    Parameters
    ----------
    x : array-like
    function : ufunc
        Binary ufunc with an identity, such as `np.add` or `np.maximum`. Results have the dtype of `x`.
    window_dimensions : int or sequence of int
        Size of windows along each dimension, including batch and features.
    window_strides, base_dilation, window_dilation : int or sequence of int
        Distance between windows, between elements of `x`, and between elements of a window.
    padding : str or sequence of (int, int)
        ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or the number of identity elements before and after each dimension.

    Returns
    -------
    ShardedArray, or ndarray if `x` is not sharded
        Divided as `x` is.

    Raises
    ------
    ValueError
        If the function has no identity, or the other arguments are inconsistent.

    References
    ----------
    jax-ml/jax, ``jax.lax.reduce_window``: parameters of the same names have the same meaning.

    Examples
    --------
    >>> from ringlet.sharding import Sharding, reduce_window, shard
    >>> x = shard(np.array([3, 1, 4, 1, 5, 9, 2, 6]), Sharding.tiled((2,)))
    >>> np.asarray(reduce_window(x, np.add, 3, padding="SAME"))
    array([ 4,  8,  6, 10, 15, 16, 17,  8])
    """
    x = as_operand(x)
    sizes = per_dimension("window_dimensions", window_dimensions, x.ndim, least=0)
    windows = windows_of(
        x.shape, sizes, window_strides, padding, base_dilation=base_dilation, window_dilation=window_dilation
    )
    identity_of(function, x.dtype)
    dtype = function(np.ones(1, x.dtype), np.ones(1, x.dtype)).dtype
    if dtype != x.dtype:
        raise ValueError(
            f"{function} of {x.dtype} returns {dtype}: pass an array of that dtype, such as x.astype({str(dtype)!r})"
        )
    return reduced("reduce_window", x, function, windows, x.dtype)


def reduce_window_vjp(
    x: Any,
    cotangent: Any,
    function: np.ufunc,
    window_dimensions: Numbers,
    window_strides: Numbers = 1,
    *,
    padding: Padding = "VALID",
    base_dilation: Numbers = 1,
    window_dilation: Numbers = 1,
) -> Any:
    """Return the gradient of :func:`reduce_window`, given the gradient of its result.

    Parameters
    ----------
    x : array-like
        The operand of the reduction.
    cotangent : array-like
        The gradient of the result, with the result's shape.
    function : {np.add, np.maximum, np.minimum}
        For maximum and minimum, the first selected element of a window in row-major order receives the whole gradient.
    window_dimensions, window_strides, padding, base_dilation, window_dilation
        As for :func:`reduce_window`.

    Returns
    -------
    ShardedArray, or ndarray if neither is sharded
        Has the shape of `x`.

    Raises
    ------
    ValueError
        If the shape of `cotangent` differs from the result's, or the function's gradient is not supported.

    Examples
    --------
    >>> from ringlet.sharding import reduce_window_vjp
    >>> reduce_window_vjp(np.array([3, 1, 4, 1]), np.array([1.0, 2.0, 4.0]), np.maximum, 2)
    array([1., 0., 6., 0.])
    """
    x, cotangent = as_operand(x), as_operand(cotangent)
    sizes = per_dimension("window_dimensions", window_dimensions, x.ndim, least=0)
    windows = windows_of(
        x.shape, sizes, window_strides, padding, base_dilation=base_dilation, window_dilation=window_dilation
    )
    return gradient("reduce_window_vjp", x, cotangent, function, windows)


def reduced(name: str, x: Any, function: np.ufunc, windows: Windows, dtype: np.dtype[Any]) -> Any:
    """Reduce windows along all dimensions; the result has the given dtype."""
    dimensions = tuple(range(x.ndim))
    linear_ops = frozenset({_LINEAR_OPS[function]} if function in _LINEAR_OPS else ())
    same = FactorMap((dimensions,), dimensions, linear=(frozenset({0}),) if linear_ops else (), linear_ops=linear_ops)

    def kernel(buffers: Sequence[Array], boxes: tuple[Box, ...], out: Array, out_box: Box) -> None:
        local = relative_windows(windows, boxes[0], dimensions, out_box, dimensions)
        reduce_windows(buffers[0][boxes[0]], out, local, function)

    return apply_with_halo(
        name,
        same,
        kernel,
        (x,),
        dtype=dtype,
        shape=counted(x.shape, windows),
        needs=lambda _, counts: needs_of(windows, dimensions, x.shape, counts),
        effort=sum(window.size for window in windows if window != POINTWISE),
        at_once=lambda _: kernel,
    )


def gradient(name: str, x: Any, cotangent: Any, function: np.ufunc, windows: Windows) -> Any:
    """Return the gradient of an array whose windows were reduced; raise ValueError for an unsupported function."""
    check_cotangent(cotangent, counted(x.shape, windows))
    turned = tuple(window.transposed(length) for window, length in zip(windows, x.shape, strict=True))
    if function is np.add:
        return reduced(name, cotangent, np.add, turned, cotangent.dtype)
    if function not in (np.maximum, np.minimum):
        raise ValueError(
            f"the gradient of windows reduced with {function} is not supported: use np.add, np.maximum or np.minimum"
        )
    dimensions = tuple(range(x.ndim))

    def needs(number: int, counts: tuple[int, ...]) -> Needs:
        outputs = needs_of(turned, dimensions, cotangent.shape, counts)
        return outputs if number == 0 else _input_box(windows, x.shape, outputs)

    def kernel(buffers: Sequence[Array], boxes: tuple[Box, ...], out: Array, out_box: Box) -> None:
        begins = tuple(there.start - here.start for there, here in zip(out_box, boxes[1], strict=True))
        local = relative_windows(windows, boxes[1], dimensions, boxes[0], dimensions)
        choice_gradient(buffers[1][boxes[1]], buffers[0][boxes[0]], out, local, function=function, begins=begins)

    return apply_with_halo(
        name,
        FactorMap((dimensions, dimensions), dimensions, linear=(frozenset({0}),)),
        kernel,
        (cotangent, x),
        dtype=cotangent.dtype,
        shape=x.shape,
        needs=needs,
        effort=math.prod(window.size for window in windows),
    )


@lru_cache(maxsize=256)
def _input_box(windows: Windows, shape: Shape, outputs: Needs) -> Needs:
    return tuple(
        tuple((window.needs(length, *bounds[0]),) for bounds in ranges or ())
        for window, length, ranges in zip(windows, shape, outputs, strict=True)
    )
