"""Contraction: sums of products of sharded arrays, the basis of all matrix products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.collectives import Op
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.shape_inference import shape_probe
from ringlet.sharding.execution.tile_execution import Kernel, apply
from ringlet.sharding.layout.factors import Factor, FactorMap, Labels
from ringlet.sharding.layout.layout import Array, Shape
from ringlet.sharding.products.product_kernel import dots, sum_along, sum_of_products
from ringlet.sharding.sharded_array import ShardedArray
from ringlet.values.operator_proxy import plain

# Number of multiply-adds of a matrix product that take as long as one pass over a byte.
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
    """Multiply operands, at least one sharded, and sum along the labels that the result lacks.

    `labels` has one label for each dimension of each operand and, last, of the result; no label occurs twice in one
    array. Dimensions with the same label have the same size, or size 1, which is repeated. A sum of Booleans is true if
    any of them is true.
    """
    dtype = np.dtype(dtype)
    shapes = tuple([x.shape for x in operands])
    is_linear = tuple([x.dtype == dtype for x in operands])
    rule, shape, effort = product_rule(labels, shapes, is_linear, dtype)
    if kernel is None:
        takes_stacks = dtype.kind == "f" and is_linear == (True, True) and labels == (labels[0], labels[0], ())
        kernel = _kernel_for(labels)
    return apply(name, rule, kernel, operands, dtype, out=out, shape=shape, effort=effort, takes_stacks=takes_stacks)


@lru_cache(maxsize=1024)
def product_rule(
    labels: tuple[Labels, ...], shapes: tuple[Shape, ...], is_linear: tuple[bool, ...], dtype: np.dtype[Any]
) -> tuple[FactorMap, Shape, float]:
    """Return the factors of a contraction, the shape of its result, and its effort; parameters as for `contract`.

    `is_linear` states for each operand whether it may be partial: its dtype must be the result's.
    """
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
        # Collectives do not support Python objects.
        whole=frozenset(summed) if dtype.hasobject else frozenset(),
        linear=tuple(frozenset({n}) for n, linear in enumerate(is_linear) if linear),
        linear_ops=frozenset({op}),
    )
    # Time of the products relative to one pass over the bytes.
    products, nbytes = math.prod(sizes.values()), sum(map(math.prod, shapes)) * dtype.itemsize
    effort = max(1.0, products / _PRODUCTS_PER_BYTE / max(1, nbytes))
    return factor_map, tuple(sizes[label] for label in labels[-1]), effort


def _sizes(labels: tuple[Labels, ...], shapes: tuple[Shape, ...]) -> dict[Factor, int]:
    sizes: dict[Factor, int] = {}
    for given, shape in zip(labels, shapes, strict=False):
        for label, size in zip(given, shape, strict=True):
            if sizes.get(label, 1) == 1:
                sizes[label] = size
    return sizes


def _kernel_for(labels: tuple[Labels, ...]) -> Kernel:
    def sums(tiles: list[Any], out: Array, where: TileBoxes) -> None:
        sum_along(np.asarray(tiles[0]), labels[0], labels[1], out)

    def products(tiles: list[Any], out: Array, where: TileBoxes) -> None:
        if out.ndim > len(labels[2]):  # a stack of tiles whose elements are multiplied and summed
            dots(tiles[0], tiles[1], out)
            return
        sum_of_products(np.asarray(tiles[0]), np.asarray(tiles[1]), (labels[0], labels[1], labels[2]), out)

    return sums if len(labels) == 2 else products


def operand(x: Any) -> Any:
    """Convert a value to an ndarray, unless it is a sharded array."""
    x = plain(x)
    return x if isinstance(x, ShardedArray) else np.asarray(x)


def _shape_only(x: Any) -> Any:
    if isinstance(x, list):
        return [_shape_only(each) for each in x]
    return shape_probe(x.shape, x.dtype) if hasattr(x, "dtype") else x


def numpy_error(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Exception:
    """Return the error that a NumPy function raises for operands of these shapes and dtypes; if none, a ValueError."""
    try:
        function(*(_shape_only(x) for x in args), **kwargs)
    except Exception as error:  # NumPy may raise any class
        return error
    return ValueError(
        f"{function.__name__} was given shapes {[getattr(x, 'shape', x) for x in args]}, which are incompatible: "
        "align the dimensions that are summed"
    )


@lru_cache(maxsize=1024)
def dtype_of(function: Callable[..., Any], dtypes: tuple[Any, ...], ndims: tuple[int, ...], **kwargs: Any) -> Any:
    """Return the dtype of a NumPy function's result, computed on arrays without elements."""
    empty = [np.empty((0,) * ndim, dtype) for dtype, ndim in zip(dtypes, ndims, strict=True)]
    return function(*empty, **kwargs).dtype
