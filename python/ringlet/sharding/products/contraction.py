"""Sums of products of sharded arrays: one operation that products of matrices and all their relatives are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives import Op
from ringlet.sharding.execution.tile_execution import Kernel, Where, apply
from ringlet.sharding.layout.factors import Factor, FactorMap, Labels
from ringlet.sharding.products.product_kernel import sum_along, sum_of_products
from ringlet.sharding.sharded_array import ShardedArray
from ringlet.values.operator_proxy import plain

__all__ = ["contract", "dtype_of", "operand", "refused_by", "standing_in"]

Array = NDArray[Any]
Shape = tuple[int, ...]

# A byte that threads go over takes as long as about so many multiplications and additions in a product of matrices.
_PRODUCTS_PER_BYTE = 3.0


def contract(
    name: str,
    operands: Sequence[Any],
    labels: tuple[Labels, ...],
    dtype: Any,
    *,
    out: Any = None,
    kernel: Kernel | None = None,
    takes_stacks: bool = False,
) -> Any:
    """Multiply operands and sum along the labels that the result lacks.

    Parameters
    ----------
    name : str
        What reports call it.
    operands : sequence of (ShardedArray or ndarray)
        One ShardedArray at least.
    labels : tuple of tuple of hashable
        One label for each dimension of each operand and, last, of the result; none twice in one array. Dimensions of
        one label have one size, or 1, which is repeated.
    dtype : dtype
        Of the result. A sum of Booleans is true if one of them is.
    out : ShardedArray, ndarray or None
        What to write the result to.
    kernel : callable or None
        Computes a tile, as :func:`~ringlet.sharding.execution.tile_execution.apply` wants it; None for the kernel of
        one operand or two.
    takes_stacks : bool
        What it says there of the kernel.

    Returns
    -------
    ShardedArray
        Partial if a dimension that is summed along is cut.

    Examples
    --------
    >>> from ringlet.sharding import Sharding, shard
    >>> x = shard(np.arange(6.0).reshape(2, 3), Sharding.tiled((2, 1)))
    >>> squares = contract("squares", [x, x], (("i", "j"), ("i", "j"), ("i",)), x.dtype)
    >>> print(squares, squares.sharding)
    [ 5. 50.] {devices=[2]<=[2]}
    """
    dtype = np.dtype(dtype)
    shapes = tuple([x.shape for x in operands])
    is_linear = tuple([x.dtype == dtype for x in operands])
    rule, shape, effort = _rule(labels, shapes, is_linear, dtype)
    kernel = kernel or _kernel_for(labels)
    return apply(name, rule, kernel, operands, dtype, out=out, shape=shape, effort=effort, takes_stacks=takes_stacks)


@lru_cache(maxsize=1024)
def _rule(
    labels: tuple[Labels, ...], shapes: tuple[Shape, ...], is_linear: tuple[bool, ...], dtype: np.dtype[Any]
) -> tuple[FactorMap, Shape, float]:
    """Give the factors of a product, the shape of its result, and how much work it is."""
    sizes = _sizes(labels, shapes)
    operands = tuple(
        tuple(label if size == sizes[label] else None for label, size in zip(given, shape, strict=True))
        for given, shape in zip(labels, shapes, strict=False)
    )
    summed = [label for label in sizes if label not in labels[-1]]
    op = Op.OR if dtype.kind == "b" else Op.SUM
    factor_map = FactorMap(
        operands,
        labels[-1],
        dict.fromkeys(summed, op),
        # Objects are added by themselves alone: nothing else knows how.
        whole=frozenset(summed) if dtype.hasobject else frozenset(),
        linear=tuple(frozenset({n}) for n, linear in enumerate(is_linear) if linear),
        linear_ops=frozenset({op}),
    )
    # How much longer the products take than going over the bytes once.
    products, nbytes = math.prod(sizes.values()), sum(map(math.prod, shapes)) * dtype.itemsize
    effort = max(1.0, products / _PRODUCTS_PER_BYTE / max(1, nbytes))
    return factor_map, tuple(sizes[label] for label in labels[-1]), effort


def _sizes(labels: tuple[Labels, ...], shapes: tuple[Shape, ...]) -> dict[Factor, int]:
    """Give the size of each label; 1 gives way to any other."""
    sizes: dict[Factor, int] = {}
    for given, shape in zip(labels, shapes, strict=False):
        for label, size in zip(given, shape, strict=True):
            if sizes.get(label, 1) == 1:
                sizes[label] = size
    return sizes


def _kernel_for(labels: tuple[Labels, ...]) -> Kernel:
    def sums(tiles: list[Any], out: Array, where: Where) -> None:
        sum_along(np.asarray(tiles[0]), labels[0], labels[1], out)

    def products(tiles: list[Any], out: Array, where: Where) -> None:
        sum_of_products(np.asarray(tiles[0]), np.asarray(tiles[1]), (labels[0], labels[1], labels[2]), out)

    return sums if len(labels) == 2 else products


def operand(x: Any) -> Any:
    """Give a sharded array as it is, and whatever else NumPy takes for an array as one."""
    x = plain(x)
    return x if isinstance(x, ShardedArray) else np.asarray(x)


def standing_in(shape: Shape, dtype: Any) -> Array:
    """Give an array of a shape and no memory, for NumPy to say what it thinks of it."""
    return np.broadcast_to(np.empty((), dtype), shape)


def _standing_in(x: Any) -> Any:
    if isinstance(x, list):
        return [_standing_in(each) for each in x]
    return standing_in(x.shape, x.dtype) if hasattr(x, "dtype") else x


def refused_by(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Exception:
    """Give the error that a function of NumPy raises for operands of such shapes and dtypes.

    Examples
    --------
    >>> refused_by(np.matmul, np.ones((2, 3)), np.ones(2))  # doctest: +ELLIPSIS
    ValueError('matmul: Input operand 1 has a mismatch in its core dimension 0...
    """
    try:
        function(*(_standing_in(x) for x in args), **kwargs)
    except Exception as error:  # whatever NumPy raises is the answer
        return error
    return ValueError(
        f"{function.__name__} was given shapes {[getattr(x, 'shape', x) for x in args]}: they do not go together"
    )


@lru_cache(maxsize=1024)
def dtype_of(function: Callable[..., Any], dtypes: tuple[Any, ...], ndims: tuple[int, ...], **kwargs: Any) -> Any:
    """Give the dtype of the result that a function of NumPy gives, by asking it about arrays without elements.

    Examples
    --------
    >>> dtype_of(np.matmul, (np.dtype("int8"), np.dtype("float32")), (2, 1))
    dtype('float32')
    """
    empty = [np.empty((0,) * ndim, dtype) for dtype, ndim in zip(dtypes, ndims, strict=True)]
    return function(*empty, **kwargs).dtype
