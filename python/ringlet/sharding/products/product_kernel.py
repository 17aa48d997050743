"""Product kernel: sums of products of two tiles along any dimensions, as matrix products if possible."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ringlet.sharding.layout.factors import Labels
from ringlet.sharding.layout.layout import Array

# Minimum length of lines for which one BLAS call for each line takes no longer than copying the lines.
_LONG = 16


def sum_of_products(a: Array, b: Array, labels: tuple[Labels, Labels, Labels], out: Array) -> None:
    """Multiply two arrays and sum along the labels that the result lacks, as an einsum of two operands.

    Operands are first converted to the dtype of `out`, which may have any strides but must not overlap them. No label
    occurs twice in one array; dimensions with the same label have the same size, or size 1, which is repeated.
    """
    if 1 in a.shape or 1 in b.shape:
        a, b, labels = _without_ones(a, b, labels)
    how = _arrangement(labels)
    _multiply(a, b, how, out)
    if (how.a_alone or how.b_alone) and out.dtype.kind in "fc" and not np.isfinite(out).all():
        # Summing first differs with infinities: inf * (1 - 1 + 1) is inf, inf - inf + inf is NaN.
        places = {label: place for place, label in enumerate(dict.fromkeys((*labels[0], *labels[1])))}
        lists = [[places[label] for label in given] for given in labels]
        np.einsum(a, lists[0], b, lists[1], lists[2], out=out, dtype=out.dtype, casting="unsafe")


def _multiply(a: Array, b: Array, how: _Arrangement, out: Array) -> None:
    a = _summed(a, how.a_alone, out.dtype).transpose(how.a_order)
    b = _summed(b, how.b_alone, out.dtype).transpose(how.b_order)
    target = out.transpose(how.out_order)
    both, rows, columns, summed = how.counts
    if not summed:
        a = a.reshape(a.shape + (1,) * columns)
        b = b.reshape(b.shape[:both] + (1,) * rows + b.shape[both:])
        np.multiply(a, b, out=target, casting="same_kind")
    elif not rows and not columns:
        _sums_of_rows(a, b, both, target)
    else:
        _product(a, b, target, how.counts)


class _Arrangement(NamedTuple):
    """Assignment of a product's dimensions to the dimensions of matrix products.

    `both` are the dimensions of all three arrays, `rows` of the result and `a`, `columns` of the result and `b`,
    `summed` of `a` and `b`. Dimensions of only one operand are summed beforehand and do not occur here.
    """

    counts: tuple[int, int, int, int]  # total sizes of `both`, `rows`, `columns` and `summed`
    a_alone: tuple[int, ...]
    b_alone: tuple[int, ...]
    a_order: tuple[int, ...]  # dimensions of `a` in the order `both`, `rows`, `summed`
    b_order: tuple[int, ...]  # dimensions of `b` in the order `both`, `summed`, `columns`
    out_order: tuple[int, ...]  # dimensions of the result in the order `both`, `rows`, `columns`


@lru_cache(maxsize=1024)
def _arrangement(labels: tuple[Labels, Labels, Labels]) -> _Arrangement:
    a, b, out = labels
    a_alone = tuple(d for d, label in enumerate(a) if label not in b and label not in out)
    b_alone = tuple(d for d, label in enumerate(b) if label not in a and label not in out)
    a_left = [label for label in a if label in b or label in out]
    b_left = [label for label in b if label in a or label in out]
    both = [label for label in out if label in a and label in b]
    rows = [label for label in out if label not in b]
    columns = [label for label in out if label not in a]
    summed = [label for label in a_left if label not in out]
    return _Arrangement(
        (len(both), len(rows), len(columns), len(summed)),
        a_alone,
        b_alone,
        tuple(map(a_left.index, (*both, *rows, *summed))),
        tuple(map(b_left.index, (*both, *summed, *columns))),
        tuple(map(out.index, (*both, *rows, *columns))),
    )


def sum_along(x: Array, labels: Labels, out_labels: Labels, out: Array) -> None:
    """Sum along the labels that the result lacks, as an einsum of one operand."""
    alone = tuple(d for d, label in enumerate(labels) if label not in out_labels)
    left = [label for label in labels if label in out_labels]
    out[...] = _summed(x, alone, out.dtype).transpose([left.index(label) for label in out_labels])


def _without_ones(
    a: Array, b: Array, labels: tuple[Labels, Labels, Labels]
) -> tuple[Array, Array, tuple[Labels, Labels, Labels]]:
    """Drop the dimensions of size 1 that have a different size in the other operand."""
    shapes = [dict(zip(given, x.shape, strict=True)) for given, x in zip(labels[:2], (a, b), strict=True)]
    places = [
        tuple(0 if size == 1 and other.get(label, 1) != 1 else slice(None) for label, size in shape.items())
        for shape, other in (shapes, shapes[::-1])
    ]
    left = [
        tuple(label for label, place in zip(given, at, strict=True) if place != 0)
        for given, at in zip(labels[:2], places, strict=True)
    ]
    return a[places[0]], b[places[1]], (left[0], left[1], labels[2])


def _summed(x: Array, alone: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Convert an operand, and sum along the dimensions `alone` that only this operand has."""
    x = x.astype(dtype, copy=False)
    if not alone:
        return x
    return np.asarray(np.any(x, axis=alone) if dtype.kind == "b" else np.sum(x, axis=alone, dtype=dtype))


def _sums_of_rows(a: Array, b: Array, num_both: int, target: Array) -> None:
    shape = (*a.shape[:num_both], math.prod(a.shape[num_both:]))
    if num_both == 0:
        if target.dtype.kind == "f":
            dots(a, b, target)
        else:
            target[...] = np.dot(a.reshape(shape), b.reshape(shape))
    else:
        np.einsum("...j,...j->...", a.reshape(shape), b.reshape(shape), out=target)


def dots(a: Array, b: Array, out: Array) -> None:
    """Sum products of real floats along the dimensions after those of `out`; long contiguous lines are not copied.

    BLAS sums contiguous and strided elements in different orders, so lines are contiguous in all memory modes.
    """
    if a.ndim == out.ndim or a.shape[-1] < _LONG:
        a, b = (x.reshape(*x.shape[: out.ndim], -1) for x in (a, b))
    a, b = (x if x.strides[-1] == x.itemsize else np.ascontiguousarray(x) for x in (a, b))
    np.add.reduce(np.vecdot(a, b).reshape(*out.shape, -1), -1, out=out)


def _product(a: Array, b: Array, target: Array, counts: tuple[int, int, int, int]) -> None:
    num_both, num_rows, num_columns, _ = counts
    both = target.shape[:num_both]
    rows = target.shape[num_both : num_both + num_rows]
    columns = target.shape[num_both + num_rows :]
    shape = (*both, math.prod(rows), math.prod(columns))
    summed = math.prod(a.shape[num_both + num_rows :])
    a = a.reshape(*both, shape[-2], summed)
    b = b.reshape(*both, summed, shape[-1])
    if _merges(target, num_both, num_rows) and _merges(target, num_both + num_rows, num_columns):
        _matmul(a, b, target.reshape(shape))
    else:
        target[...] = _matmul(a, b, None).reshape(target.shape)


def _matmul(a: Array, b: Array, out: Array | None) -> Array:
    # BLAS does not support integers; NumPy's einsum, which sums along rows, is many times faster than its matmul.
    if a.dtype.kind in "iu":
        return np.einsum("...ij,...jk->...ik", a, b, out=out)
    return np.matmul(packed(a), packed(b), out=out)


def packed(x: Array) -> Array:
    """Return an operand of a matrix product with strides that BLAS supports; copy a view with other strides.

    NumPy multiplies such views in its own loops, which are slower and may differ in the last bits of floats.
    """
    if x.dtype.kind not in "fc" or x.flags.forc:
        return x
    strides = x.strides[-2:]
    is_matrix = 1 not in x.shape[-2:] and x.itemsize in strides and min(strides) > 0
    return x if is_matrix else x.copy(order="K")


def _merges(x: Array, first: int, number: int) -> bool:
    sides = [
        (size, stride)
        for size, stride in zip(x.shape[first : first + number], x.strides[first : first + number], strict=True)
        if size != 1
    ]
    return all(outer == size * inner for (_, outer), (size, inner) in itertools.pairwise(sides)) and x.size > 0
