"""Convolution kernel of one tile: sums over window elements, as products of matrices or of elements.

Arrays are views in a canonical order of dimensions: kernels ``[*window, group, c, o]`` with c input and o output
features, inputs ``[*position, group, c]``, outputs ``[*position, group, o]``. A position has an index in the batch,
where windows have one element, and in each spatial dimension.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ringlet.sharding.halo.cache_blocks import Block, blocks, filled, tap_slices, wide
from ringlet.sharding.halo.windows import POINTWISE, Windows
from ringlet.sharding.layout.layout import Array, Shape

# Scratch memory of a block: most of the L2 cache for matrix products, most of the L1 cache for elementwise products.
_MATRIX_BYTES = 768 << 10
_ELEMENT_BYTES = 64 << 10
# Up to this value of c * o (four times this value with several groups), elementwise products are faster than a matrix
# product of that width.
_FEW = 4
# Maximum number of multiplications for which OpenBLAS does not copy the matrices; minimum number of rows for good
# speed.
_SMALL, _LEAST_ROWS = 900_000, 256
# Maximum magnitude of integers that are exact in float64, which has fast matrix products.
_EXACT = 1 << 53


def convolve(x: Array, kernel: Array, out: Array, windows: Windows, counts: tuple[int, ...] = ()) -> None:
    """Fill one tile of outputs, or `counts` equal tiles along each dimension, with the same bits as separate calls.

    Arrays are x[*position, group, c], kernel[*window, group, c, o], out[*position, group, o]; the `high` of
    windows is not used. Overflow does not warn, as with ``np.convolve``, because products outside of all
    outputs are computed too.
    """
    if not out.size:
        return
    if not x.size or not kernel.size:
        out[...] = 0
    elif math.prod(counts) > 1:
        convolve(*_stacked(x, kernel, out, windows, counts))
    else:
        with np.errstate(all="ignore"):
            _convolve_tile(x, kernel, out, windows)


def _stacked(
    x: Array, kernel: Array, out: Array, windows: Windows, counts: tuple[int, ...]
) -> tuple[Array, Array, Array, Windows]:
    """Rewrite the convolution of several tiles as one convolution with an additional dimension for the tiles."""
    (block,) = blocks(x.shape[:-2], out.shape[:-2], windows, sys.maxsize)
    places = filled(x, block, x.dtype)
    sizes = [size // count for size, count in zip(out.shape, counts, strict=False)]
    reach = [(size - 1) * window.stride + window.reach for size, window in zip(sizes, windows, strict=True)]
    steps = [s * size * window.stride for s, size, window in zip(places.strides, sizes, windows, strict=False)]
    tiles = as_strided(places, (*counts, *reach, *x.shape[-2:]), (*steps, *places.strides))
    apart = out.reshape(*itertools.chain(*zip(counts, sizes, strict=True)), *out.shape[-2:])
    ndim = len(counts)
    order = (*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2), -2, -1)
    inside = tuple([window._replace(low=0, base=1) for window in windows])
    return tiles, kernel[(np.newaxis,) * ndim], apart.transpose(order), (POINTWISE,) * ndim + inside


def kernel_gradient(x: Array, cotangent: Array, gradient: Array, windows: Windows) -> None:
    """Fill a kernel's gradient[*window, group, c, o] from the outputs' gradient, cotangent[*position, group, o]."""
    if not gradient.size or not x.size or not cotangent.size:
        gradient[...] = 0
    else:
        with np.errstate(all="ignore"):
            _gradient_of_tile(x, cotangent, gradient, windows)


def _convolve_tile(x: Array, kernel: Array, out: Array, windows: Windows) -> None:
    if _is_narrow(kernel):
        _convolve_elements(x, kernel, out, windows)
        return
    dtype = _matrix_dtype(out.dtype, x, kernel, math.prod(kernel.shape[:-3]) * kernel.shape[-2])
    # Arrays of objects are convolved with copied windows.
    is_seamless = not dtype.hasobject and _is_seamless(windows, out.shape[-3], kernel.shape[-2:])
    convolve_group = _convolve_seamless if is_seamless else _convolve_matrices
    for group in range(x.shape[-2]):
        weights = np.ascontiguousarray(kernel[..., group, :, :], dtype)
        convolve_group(x[..., group, :], weights, out[..., group, :], windows)


def _gradient_of_tile(x: Array, cotangent: Array, gradient: Array, windows: Windows) -> None:
    if _is_narrow(gradient):
        _gradient_of_elements(x, cotangent, gradient, windows)
        return
    dtype = _matrix_dtype(gradient.dtype, x, cotangent, math.prod(cotangent.shape[:-2]))
    for group in range(x.shape[-2]):
        _gradient_of_matrices(x[..., group, :], cotangent[..., group, :], gradient[..., group, :, :], dtype, windows)


# Elementwise products: for depthwise kernels and kernels with few features


def _is_narrow(kernel: Array) -> bool:
    group, c, o = kernel.shape[-3:]
    return bool(c * o <= (_FEW if group == 1 else 4 * _FEW))


def _element_blocks(x: Array, outputs: Array, dtype: np.dtype[Any], windows: Windows) -> Iterator[Block]:
    most = _ELEMENT_BYTES // (x.shape[-2] * x.shape[-1] * dtype.itemsize)
    return blocks(x.shape[:-2], outputs.shape[:-2], windows, most)


def _convolve_elements(x: Array, kernel: Array, out: Array, windows: Windows) -> None:
    dtype = wide(out.dtype)
    weights = np.moveaxis(kernel, -3, -1).astype(dtype)
    c, o, group = weights.shape[-3:]
    for block in _element_blocks(x, out, dtype, windows):
        places = filled(x, block, dtype)
        taps = [(weights[tap], places[seen]) for tap, seen in tap_slices(windows, block.counts)]
        total, product = np.empty((2, *block.counts, group), dtype)
        for feature in range(o):
            total.fill(0)
            for (factor, seen), number in itertools.product(taps, range(c)):
                np.multiply(seen[..., number], factor[number, feature], out=product)
                np.add(total, product, out=total)
            out[block.outputs][..., feature] = total


def _gradient_of_elements(x: Array, cotangent: Array, gradient: Array, windows: Windows) -> None:
    dtype = wide(gradient.dtype)
    group, c, o = gradient.shape[-3:]
    total = np.zeros(gradient.shape, dtype)
    for block in _element_blocks(x, cotangent, dtype, windows):
        places = filled(x, block, dtype)
        outputs = cotangent[block.outputs].astype(dtype, copy=False)
        product = np.empty((*block.counts, group), dtype)
        for (tap, seen), number, feature in itertools.product(tap_slices(windows, block.counts), range(c), range(o)):
            np.multiply(places[seen][..., number], outputs[..., feature], out=product)
            total[tap][:, number, feature] += product.reshape(-1, group).sum(axis=0, dtype=dtype)
    gradient[...] = total


# Matrix products: one row for each output, with the elements of its window


def _convolve_matrices(x: Array, weights: Array, out: Array, windows: Windows) -> None:
    sums, products = _Scratch(weights.dtype), _Scratch(weights.dtype)
    for block, matrices in _matrices(x, out.shape[:-1], weights.dtype, windows):
        first, *factors = weights.reshape(len(matrices), -1, weights.shape[-1])
        shape = (*matrices[0].shape[:-1], weights.shape[-1])
        total = np.matmul(matrices[0], first, out=sums.of(shape))
        for matrix, factor in zip(matrices[1:], factors, strict=True):
            np.add(total, np.matmul(matrix, factor, out=products.of(shape)), out=total)
        _store(total.reshape(*block.counts, -1), out[block.outputs])


class _Seamless(NamedTuple):
    """Scratch memory for blocks of one size, with cached views.

    `memory` holds `places`, the padded input [*outer, line, position, c], plus one window of padding at the end; line
    lengths are multiples of the window size. `matrices` has, for each window element along the outer dimensions and
    lines, an overlapping view [*outer, start, row, window * c]: for each start offset below the window size, the matrix
    whose rows are consecutive windows. `sums` [2, *outer, line, position, o] holds the running total and the latest
    product; `products` is a view of it, [2, *outer, start, row, o].
    """

    memory: Array
    places: Array
    matrices: list[Array]
    sums: Array
    products: Array


def _convolve_seamless(x: Array, weights: Array, out: Array, windows: Windows) -> None:
    """Convolve without copying the windows, which overlap in memory.

    Every `size`-th window begins where the previous such window ends, so these windows are the rows of a matrix inside
    the input; a second matrix begins with the second window, and so on. If each line of positions holds a whole number
    of such windows, the matrix continues from one line to the next. Matrix rows on the seam belong to no output.
    """
    size, (c, o) = windows[-1].size, weights.shape[-2:]
    factors = weights.reshape(-1, size * c, o)
    most = min(_MATRIX_BYTES // ((c + 2 * o) * weights.itemsize), size * max(_LEAST_ROWS, _SMALL // (size * c * o)))
    made: dict[tuple[int, ...], _Seamless] = {}
    for block in blocks(x.shape[:-1], out.shape[:-1], windows, most):
        counts = block.counts
        if counts not in made:
            made[counts] = _seamless(block, windows, (c, o), weights.dtype)
        memory, places, matrices, (total, product), products = made[counts]
        memory.fill(0)
        places[block.target] = x[block.source]
        for number, factor in enumerate(factors):
            np.matmul(matrices[number], factor, out=products[min(number, 1)])
            if number:
                np.add(total, product, out=total)
        _store(total[..., : counts[-1], :], out[block.outputs])


def _seamless(block: Block, windows: Windows, features: tuple[int, int], dtype: np.dtype[Any]) -> _Seamless:
    size, (c, o) = windows[-1].size, features
    *outer, lines, count = block.counts
    width = _seamless_width(size, count)
    shape = (*block.places[:-1], width, c)
    memory = np.empty(math.prod(shape) + size * c, dtype)
    places = memory[: -size * c].reshape(shape)
    *strides, step, item = places.strides
    rows = (*outer, size, lines * width // size, size * c), (*strides[:-1], step, size * step, item)
    firsts = [
        sum([side.start * stride for side, stride in zip(slices, strides, strict=True)])
        for _, slices in tap_slices(windows[:-1], block.counts[:-1])
    ]
    matrices: list[Array] = [np.ndarray(rows[0], dtype, memory, first, rows[1]) for first in firsts]
    sums: Array = np.empty((2, *outer, lines, width, o), dtype)
    return _Seamless(memory, places, matrices, sums, sums.reshape(2, *outer, -1, size, o).swapaxes(-2, -3))


def _is_seamless(windows: Windows, count: int, features: Sequence[int]) -> bool:
    """Return whether windows need not be copied, and copies would be no smaller than the outputs.

    Requires strides of 1, several adjacent elements along the last dimension of the window, and few windows on a seam.
    """
    size, (c, o) = windows[-1].size, features
    is_dense = all(window.stride == 1 for window in windows) and windows[-1].reach == size > 1
    return is_dense and size * c >= o and 10 * _seamless_width(size, count) <= 11 * count


def _seamless_width(size: int, count: int) -> int:
    """Return the number of positions that `count` windows span, rounded up to a multiple of the window size."""
    return -(-(count + size - 1) // size) * size


def _gradient_of_matrices(x: Array, cotangent: Array, gradient: Array, dtype: np.dtype[Any], windows: Windows) -> None:
    total = np.zeros(gradient.shape, dtype)
    for block, matrices in _matrices(x, cotangent.shape[:-1], dtype, windows):
        outputs = np.ascontiguousarray(cotangent[block.outputs], dtype)
        for matrix, row in zip(matrices, total.reshape(len(matrices), -1, total.shape[-1]), strict=True):
            products = np.matmul(matrix.swapaxes(-1, -2), outputs.reshape(*matrix.shape[:-1], -1))
            np.add(row, products.reshape(-1, *row.shape).sum(axis=0, dtype=dtype), out=row)
    _store(total, gradient)


def _matrices(
    x: Array, counts: tuple[int, ...], dtype: np.dtype[Any], windows: Windows
) -> Iterator[tuple[Block, list[Array]]]:
    """Yield, block by block, matrices whose products with parts of the kernel add up to the outputs.

    With strides of 1 along all but the last dimension, each row of the window has a matrix, which overlaps the matrices
    of adjacent rows in memory. Otherwise one matrix holds the whole window.
    """
    c = x.shape[-1]
    # Number of window dimensions with separate matrices.
    num_outer = len(windows) - 1 if all(window.stride == 1 for window in windows[:-1]) else 0
    inner = windows[num_outer:]
    size = math.prod(window.size for window in inner) * c
    scratch = _Scratch(dtype)
    for block in blocks(x.shape[:-1], counts, windows, _MATRIX_BYTES // (size * dtype.itemsize)):
        view = _windowed(filled(x, block, dtype), block.counts, num_outer, inner)
        rows = scratch.of(view.shape)
        np.copyto(rows, view)
        rows = rows.reshape(*view.shape[: len(windows)], size)
        taps = tap_slices(windows[:num_outer], block.counts[:num_outer])
        yield block, [_as_matrix(rows[seen]) for _, seen in taps]


def _windowed(places: Array, counts: Sequence[int], num_outer: int, inner: Windows) -> Array:
    """View positions as [*outer position, *inner output, *inner window, c]."""
    shape, strides = places.shape, places.strides
    steps = strides[num_outer:-1]
    return as_strided(
        places,
        (*shape[:num_outer], *counts[num_outer:], *(window.size for window in inner), shape[-1]),
        (
            *strides[:num_outer],
            *(step * window.stride for step, window in zip(steps, inner, strict=True)),
            *(step * window.dilation for step, window in zip(steps, inner, strict=True)),
            strides[-1],
        ),
    )


def _as_matrix(rows: Array) -> Array:
    """View rows in contiguous memory, indexed by two dimensions, as rows of one matrix."""
    return rows.reshape(*rows.shape[:-3], -1, rows.shape[-1]) if rows.ndim > 2 else rows


class _Scratch:
    """Scratch memory reused by successive blocks, to avoid page faults."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._memory = np.empty(0, dtype)

    def of(self, shape: Shape) -> Array:
        size = math.prod(shape)
        if size > self._memory.size:
            self._memory = np.empty(size, self._memory.dtype)
        return self._memory[:size].reshape(shape)


def _store(total: Array, target: Array) -> None:
    """Write sums to their target; integers wrap on overflow, as in NumPy."""
    if total.dtype.kind == "f" and target.dtype.kind in "iu":
        total = total.astype(np.int64)
    np.copyto(target, total, casting="unsafe")


def _matrix_dtype(dtype: np.dtype[Any], one: Array, other: Array, length: int) -> np.dtype[Any]:
    """Return the dtype for matrix products: float64 for integers if sums of `length` products are exact."""
    if dtype.kind in "iu" and length * _largest(one) * _largest(other) < _EXACT:
        return np.dtype(np.float64)
    return wide(dtype)


def _largest(array: Array) -> int:
    return max(int(array.max()), -int(array.min()))
