"""Generalized ufuncs of vectors and matrices: matmul, vecdot, matvec and vecmat."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.cached_calls import cached
from ringlet.sharding.execution.linearity import settled
from ringlet.sharding.execution.propagation import plan
from ringlet.sharding.execution.shape_inference import shape_probe
from ringlet.sharding.execution.ufunc_table import implements_ufunc
from ringlet.sharding.explain_operations import is_recording
from ringlet.sharding.layout.factors import Labels
from ringlet.sharding.layout.layout import Layout, Shape
from ringlet.sharding.products.contraction import contract, dtype_of, numpy_error, operand, product_rule
from ringlet.sharding.products.product_kernel import packed
from ringlet.sharding.resharding.reshard import materialized
from ringlet.sharding.sharded_array import ShardedArray

# Core dimensions of each operand and of the result.
_CORES: dict[str, tuple[Labels, Labels, Labels]] = {
    "matmul": (("i", "j"), ("j", "k"), ("i", "k")),
    "vecdot": (("j",), ("j",), ()),
    "matvec": (("i", "j"), ("j",), ("i",)),
    "vecmat": (("j",), ("j", "k"), ("k",)),
}


def generalized(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run a generalized ufunc; calls with ``keepdims`` return NotImplemented."""
    if kwargs:
        return NotImplemented if kwargs.get("keepdims") else _generalized(ufunc, inputs, kwargs)
    operands = tuple(map(settled, inputs))
    is_sharded = not is_recording() and all(type(x) is ShardedArray for x in operands)
    if is_sharded and _is_combined_first(ufunc, tuple([(x._layout, x._shape, x._dtype) for x in operands])):
        operands = tuple(map(materialized, operands))
    return cached(ufunc, operands, lambda: _generalized(ufunc, inputs, kwargs))


@lru_cache(maxsize=1024)
def _is_combined_first(ufunc: np.ufunc, kinds: tuple[tuple[Layout, Shape, np.dtype[Any]], ...]) -> bool:
    """Return whether to combine partial operands first, namely if the plan combines them without changing their tiles.

    False if no operand is partial, or one is replicated, on a single device, or not floating-point or complex.
    """
    layouts, shapes, dtypes = zip(*kinds, strict=True)
    if not any(x.is_partial for x in layouts) or any(x.is_replicated or x.only is not None for x in layouts):
        return False
    if len({x.num_devices for x in layouts}) > 1 or any(x.kind not in "fc" for x in dtypes):
        return False
    labels, dtype = _rule(ufunc, shapes, dtypes)
    factor_map, shape, _ = product_rule(labels, shapes, (False,) * len(kinds), dtype)
    chosen = plan(factor_map, shapes, tuple([x.itemsize for x in dtypes]), layouts, dtype.itemsize, result_shape=shape)
    return all(on == x.without_parts() for on, x in zip(chosen.operand_layouts, layouts, strict=True) if x.is_partial)


def _generalized(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    options = {name: value for name, value in kwargs.items() if name not in ("out", "order", "subok", "keepdims")}
    operands = [operand(x) for x in inputs]
    rule = _rule.__wrapped__ if "axes" in options else _rule  # lists cannot be cache keys
    dtypes = tuple([x.dtype for x in operands])
    labels, dtype = rule(ufunc, tuple([x.shape for x in operands]), dtypes, **options)
    out = kwargs.get("out", (None,))[0]
    ndim = len(labels[-1])
    is_row, is_column = (ufunc is np.matmul and len(given) == 1 for given in labels[:2])

    def kernel(tiles: list[Any], target: Any, _: Any) -> None:
        if target.ndim > ndim:  # a stack: vectors are matrices of one row or column
            if is_column:
                tiles, target = [tiles[0], tiles[1][..., None]], target[..., None]
            if is_row:
                tiles, target = [tiles[0][..., None, :], tiles[1]], target[..., None, :]
        ufunc(*map(packed, tiles), out=target, **options)

    # einsum's kernel multiplies integers faster, but does not conjugate.
    if dtype.kind in "iu":
        return contract(ufunc.__name__, operands, labels, dtype, out=out)
    ndims = (len(labels[0]) + is_row, len(labels[1]) + is_column)
    repeated = {each - len(core) for each, core in zip(ndims, _CORES[ufunc.__name__], strict=False)}
    takes_stacks = not options and len(repeated) == 1 and min(repeated) >= 0 and dtypes == (dtype, dtype)
    return contract(ufunc.__name__, operands, labels, dtype, out=out, kernel=kernel, takes_stacks=takes_stacks)


@lru_cache(maxsize=1024)
def _rule(
    ufunc: np.ufunc, shapes: tuple[Shape, ...], dtypes: tuple[np.dtype[Any], ...], **options: Any
) -> tuple[tuple[Labels, ...], np.dtype[Any]]:
    ndims = tuple(map(len, shapes))
    labels = _labels(ufunc.__name__, ndims, _axes(options))
    if labels is None or not _are_compatible(labels, shapes):
        raise numpy_error(ufunc, *map(shape_probe, shapes, dtypes), **options)
    named = {name: value for name, value in options.items() if name in ("dtype", "casting", "signature", "sig")}
    return labels, dtype_of(ufunc, dtypes, tuple(max(2, ndim) for ndim in ndims), **named)


def _axes(options: dict[str, Any]) -> Sequence[Any] | None:
    """Return the axes of the core dimensions of operands and result; None if they are last."""
    if (axis := options.get("axis")) is not None:
        return [axis, axis, ()]
    return options.get("axes")


def _labels(name: str, ndims: Sequence[int], axes: Sequence[Any] | None) -> tuple[Labels, ...] | None:
    """Return the labels of dimensions (of loop dimensions: numbers); None for arguments that NumPy rejects."""
    first, second, result = _CORES[name]
    if name == "matmul":
        first = first[-ndims[0] :] if ndims[0] else first
        second = second[:1] if ndims[1] == 1 else second
        result = tuple(label for label in result if label in first or label in second)
    cores = (first, second, result)
    repeated = [ndim - len(core) for ndim, core in zip(ndims, cores, strict=False)]
    if min(repeated) < 0:
        return None
    given = [*(axes or ())] + [()] * (3 - len(axes)) if axes is not None else [None] * 3
    labels = []
    for core, count, at in zip(cores, [*repeated, max(repeated)], given, strict=True):
        ndim = count + len(core)
        where = range(ndim - len(core), ndim) if at is None else np.atleast_1d(np.array(at, int))
        if len(where) != len(core) or any(not -ndim <= place < ndim for place in where):
            return None
        placed = {place % ndim: label for place, label in zip(where, core, strict=True)}
        others = iter(range(count, 0, -1))
        labels.append(tuple(placed[d] if d in placed else next(others) for d in range(ndim)))
    return tuple(labels)


def _are_compatible(labels: tuple[Labels, ...], shapes: Sequence[Shape]) -> bool:
    """Return whether dimensions with the same label have the same size; loop dimensions may have size 1."""
    sizes: dict[Any, set[int]] = {}
    for given, shape in zip(labels, shapes, strict=False):
        for label, size in zip(given, shape, strict=True):
            sizes.setdefault(label, set()).add(size)
    return all(len(found - {1} if isinstance(label, int) else found) < 2 for label, found in sizes.items())


for _name in _CORES:
    if hasattr(np, _name):  # matvec and vecmat were added in NumPy 2.2, vecdot in 2.0
        implements_ufunc(getattr(np, _name))(generalized)
        if _name in ("matmul", "vecdot"):
            implements(f"linalg.{_name}")(getattr(np, _name))
