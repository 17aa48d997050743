"""Products of two arrays, powers of matrices, and ``tensorsolve``."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.products.contraction import contract, dtype_of, numpy_error, operand
from ringlet.sharding.resharding.tile_assembly import as_writable


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Implement :func:`numpy.dot`."""
    a, b = operand(a), operand(b)
    if 0 in (a.ndim, b.ndim):
        return np.multiply(a, b, out=out)
    if a.shape[-1] != b.shape[max(0, b.ndim - 2)]:
        raise numpy_error(np.dot, a, b)
    if out is None and a.ndim < 3 > b.ndim and a.dtype.kind == b.dtype.kind == "f":
        return np.matmul(a, b)
    return _along("dot", a, b, [(a.ndim - 1, max(0, b.ndim - 2))], out)


@implements(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    """Implement :func:`numpy.inner`."""
    a, b = operand(a), operand(b)
    if 0 in (a.ndim, b.ndim):
        return np.multiply(a, b)
    if a.shape[-1] != b.shape[-1]:
        raise numpy_error(np.inner, a, b)
    return _along("inner", a, b, [(a.ndim - 1, b.ndim - 1)])


@implements(np.tensordot, "linalg.tensordot")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Sum products along pairs of dimensions."""
    a, b = operand(a), operand(b)
    try:
        pairs = _pairs(axes, a.ndim)
    except TypeError:
        raise numpy_error(np.tensordot, a, b, axes) from None
    in_range = all(-a.ndim <= i < a.ndim and -b.ndim <= j < b.ndim for i, j in pairs)
    pairs = [(i % max(1, a.ndim), j % max(1, b.ndim)) for i, j in pairs]
    apart = all(len(set(places)) == len(places) for places in zip(*pairs, strict=True))
    if not in_range or not apart or any(a.shape[i] != b.shape[j] for i, j in pairs):
        raise numpy_error(np.tensordot, a, b, axes)
    return _along("tensordot", a, b, pairs)


def _pairs(axes: Any, ndim: int) -> list[tuple[int, int]]:
    try:
        first, second = axes
    except TypeError:
        count = operator.index(axes)
        return [(ndim - count + i, i) for i in range(count)]
    lists = [[operator.index(place) for place in np.atleast_1d(np.array(side, int))] for side in (first, second)]
    if len(lists[0]) != len(lists[1]):
        raise TypeError(f"axes must list equal numbers of dimensions of both arrays, got {axes!r}")
    return list(zip(*lists, strict=True))


def _along(name: str, a: Any, b: Any, pairs: list[tuple[int, int]], out: Any = None) -> Any:
    """Sum products along pairs of dimensions; the result has the other dimensions of `a`, then of `b`."""
    a_labels: list[Any] = [("a", i) for i in range(a.ndim)]
    b_labels: list[Any] = [("b", j) for j in range(b.ndim)]
    for number, (i, j) in enumerate(pairs):
        a_labels[i] = b_labels[j] = number
    left = tuple(label for label in (*a_labels, *b_labels) if not isinstance(label, int))
    dtype = dtype_of(np.dot, (a.dtype, b.dtype), (2, 2))
    if dtype.kind in "mMSU" or dtype.names:
        return NotImplemented  # np.matmul does not support these dtypes
    return contract(name, [a, b], (tuple(a_labels), tuple(b_labels), left), dtype, out=out)


@implements(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    """Sum the products of corresponding elements; the first array is conjugated."""
    a, b = operand(a), operand(b)
    if a.size != b.size:
        raise numpy_error(np.vdot, a, b)
    if a.shape != b.shape:
        a, b = np.ravel(a), np.ravel(b)
    if not {a.dtype.kind, b.dtype.kind} <= {*"biufc"}:
        return NotImplemented
    labels = tuple(range(a.ndim))
    dtype = dtype_of(np.vdot, (a.dtype, b.dtype), (1, 1))

    def conjugating(tiles: list[Any], target: Any, _: Any) -> None:
        target[...] = np.vdot(*tiles)

    return contract("vdot", [a, b], (labels, labels, ()), dtype, kernel=conjugating if dtype.kind == "c" else None)


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Multiply each element of one array by each element of the other."""
    a, b = (x if x.ndim == 1 else np.ravel(x) for x in (operand(a), operand(b)))
    return np.multiply(a[:, None], b, out=out)


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    """Return the Kronecker product of two arrays."""
    a, b = operand(a), operand(b)
    ndim = max(a.ndim, b.ndim)
    a, b = (np.reshape(x, (1,) * (ndim - x.ndim) + x.shape) for x in (a, b))
    apart = [tuple(size for n in x.shape for size in ((n, 1), (1, n))[side]) for side, x in enumerate((a, b))]
    product: Any = np.multiply(np.reshape(a, apart[0]), np.reshape(b, apart[1]))
    return as_writable(product.reshape(tuple(i * j for i, j in zip(a.shape, b.shape, strict=True))))


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Any:
    """Return a power of square matrices."""
    a, exponent = operand(a), operator.index(n)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise numpy_error(np.linalg.matrix_power, a, n)
    if exponent < 0:
        return matrix_power(np.linalg.inv(a), -exponent)
    if exponent == 0 or a.dtype.hasobject:
        return NotImplemented
    result, square = None, a
    while exponent:
        if exponent & 1:
            result = square if result is None else np.matmul(result, square)
        exponent >>= 1
        square = np.matmul(square, square) if exponent else square
    return np.copy(result) if result is a else result


@implements("linalg.outer")
def _outer(x1: Any, x2: Any, /) -> Any:
    x1, x2 = operand(x1), operand(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise numpy_error(np.linalg.outer, x1, x2)
    return outer(x1, x2)


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """Solve ``tensordot(a, x) == b`` for x."""
    a, b = operand(a), operand(b)
    if axes is not None:
        moved = [axis % a.ndim for axis in axes]
        a = np.transpose(a, [d for d in range(a.ndim) if d not in moved] + moved)
    shape = a.shape[b.ndim :]
    if math.prod(shape) ** 2 != a.size:
        raise numpy_error(np.linalg.tensorsolve, a, b)
    return np.linalg.solve(a.reshape(-1, math.prod(shape)), b.reshape(-1)).reshape(shape)
