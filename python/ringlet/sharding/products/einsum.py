"""Einsum of sharded arrays: two operands at a time, in the order of the least work."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.layout.factors import Labels
from ringlet.sharding.layout.layout import Shape
from ringlet.sharding.ops.diagonals import merged
from ringlet.sharding.products.contraction import contract, numpy_error, operand
from ringlet.sharding.products.einsum_subscripts import labels_of, text_and_operands
from ringlet.sharding.products.product_order import product_order

__all__ = ["einsum", "multi_dot"]

Term = tuple[Any, Labels]


@implements(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    """Run ``np.einsum``. Operands are multiplied in pairs even without `optimize`; `order` has no effect."""
    text, arrays = text_and_operands(operands)
    arrays = [operand(x) for x in arrays]
    labels = _labels(text, tuple(x.shape for x in arrays))
    if labels is None:
        raise numpy_error(np.einsum, text, *arrays, **kwargs)
    if len(arrays) == 1 and out is None and set(labels[0]) == set(labels[1]):
        dtype = arrays[0].dtype  # keyword options are dropped: NumPy returns a view
    else:
        dtype = _dtype(tuple(x.dtype for x in arrays), None if out is None else out.dtype, **kwargs)
    terms = [merged(x, given) for x, given in zip(arrays, labels, strict=False)]
    return _product("einsum", terms, labels[-1], dtype, out)


@lru_cache(maxsize=1024)
def _labels(text: str, shapes: tuple[Shape, ...]) -> tuple[Labels, ...] | None:
    """Label the dimensions of the operands and of the result; None for arguments that NumPy refuses."""
    labels = labels_of(text, [len(shape) for shape in shapes])
    return labels if labels is not None and _are_compatible(labels, shapes) else None


def _are_compatible(labels: tuple[Labels, ...], shapes: Sequence[Shape]) -> bool:
    """Return whether dimensions of one label have one size, or 1; in one operand, one size."""
    sizes: dict[Any, int] = {}
    for given, shape in zip(labels, shapes, strict=False):
        if len(set(zip(given, shape, strict=True))) > len(set(given)):
            return False
        for label, size in zip(given, shape, strict=True):
            if size != 1 and sizes.setdefault(label, size) != size:
                return False
    return True


@lru_cache(maxsize=1024)
def _dtype(dtypes: tuple[Any, ...], out_dtype: Any, **options: Any) -> np.dtype[Any]:
    """Return the dtype of NumPy's result; raises its error for a refused cast."""
    ones = [np.zeros(1, dtype) for dtype in dtypes]
    if out_dtype is not None:
        options["out"] = np.empty((), out_dtype)
    found: Any = np.einsum(",".join("i" * len(ones)) + "->", *ones, **options)
    dtype: np.dtype[Any] = np.asarray(found).dtype
    return dtype


def _product(name: str, terms: list[Term], wanted: Labels, dtype: np.dtype[Any], out: Any) -> Any:
    """Multiply arrays, two at a time, and sum along labels once no other operand has them."""
    for i, j in product_order([given for _, given in terms], [x.shape for x, _ in terms], wanted):
        (a, a_labels), (b, b_labels) = terms[i], terms[j]
        rest = [term for n, term in enumerate(terms) if n not in (i, j)]
        if not rest:
            return contract(name, [a, b], (a_labels, b_labels, wanted), dtype, out=out)
        needed = {*wanted, *(label for _, given in rest for label in given)}
        left = tuple(label for label in dict.fromkeys((*a_labels, *b_labels)) if label in needed)
        terms = [*rest, _pair(name, (a, a_labels), (b, b_labels), left, dtype)]
    (x, given) = terms[0]
    return contract(name, [x], (given, wanted), dtype, out=out)


def _pair(name: str, a: Term, b: Term, left: Labels, dtype: np.dtype[Any]) -> Term:
    """Multiply two arrays; immediately if neither is sharded."""
    if isinstance(a[0], np.ndarray) and isinstance(b[0], np.ndarray):
        letters = {label: number for number, label in enumerate(dict.fromkeys((*a[1], *b[1])))}
        lists = [[letters[label] for label in given] for given in (a[1], b[1], left)]
        product = np.einsum(a[0], lists[0], b[0], lists[1], lists[2], dtype=dtype, casting="unsafe")
        return np.asarray(product), left
    return contract(name, [a[0], b[0]], (a[1], b[1], left), dtype), left


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Multiply a chain of matrices; the first and the last may be vectors."""
    matrices = [operand(x) for x in arrays]
    ndims = [x.ndim for x in matrices]
    inner = [x.shape for x in matrices]
    fits = len(matrices) > 1 and all(ndim == 2 for ndim in ndims[1:-1]) and {ndims[0], ndims[-1]} <= {1, 2}
    if not fits or any(a[-1] != b[0] for a, b in itertools.pairwise(inner)):
        raise numpy_error(np.linalg.multi_dot, matrices)
    sizes = (
        1 if ndims[0] == 1 else inner[0][0],
        *(shape[0] for shape in inner[1:]),
        inner[-1][-1] if ndims[-1] > 1 else 1,
    )
    return _chained(matrices, sizes, out)


def _chained(matrices: list[Any], sizes: tuple[int, ...], out: Any = None) -> Any:
    """Multiply matrices in the cheapest order; in NumPy's for integers that overflow."""
    if len(matrices) == 1:
        return matrices[0]
    _, middle = _cheapest(sizes)
    left, right = _chained(matrices[:middle], sizes[: middle + 1]), _chained(matrices[middle:], sizes[middle:])
    return np.dot(left, right, out)


@lru_cache(maxsize=1024)
def _cheapest(sizes: tuple[int, ...]) -> tuple[int, int]:
    """Return the number of multiplications of a matrix chain, and the split that needs so few."""
    rows, *_, columns = sizes
    return min(
        (
            (_cheapest(sizes[: k + 1])[0] + _cheapest(sizes[k:])[0] + rows * sizes[k] * columns, k)
            for k in range(1, len(sizes) - 1)
        ),
        default=(0, 0),
    )
