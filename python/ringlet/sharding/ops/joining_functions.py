"""Concatenate and similar functions: each device copies its part of the result from the devices that hold it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringlet.sharding.creation import replicated_with
from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.shape_inference import dtype_probe, shape_probe
from ringlet.sharding.execution.tile_execution import write_out
from ringlet.sharding.layout.layout import WHOLE, Layout, covers
from ringlet.sharding.resharding.regions import ArraySpec, Region
from ringlet.sharding.resharding.reshard import materialized
from ringlet.sharding.resharding.tile_assembly import assemble, full_ranges
from ringlet.sharding.sharded_array import ShardedArray
from ringlet.values.operator_proxy import plain


@implements(np.concatenate)
def concatenate(
    arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    """Implement :func:`numpy.concatenate` in an operand's layout or a mix of them, whichever sends the fewest bytes."""
    operands = [_operand(array) for array in arrays]
    if axis is None:
        operands, axis = [np.ravel(x) for x in operands], 0
    if not _fit(operands, axis):
        np.concatenate([shape_probe(x.shape) for x in operands], axis)  # raises NumPy's error
    axis = operator.index(axis) % operands[0].ndim
    if out is not None and dtype is not None:
        np.concatenate([np.empty(0)], out=np.empty(0), dtype=dtype)
    dtype = dtype if out is None else out.dtype
    kind = np.concatenate([dtype_probe(x) for x in operands], dtype=dtype, casting=casting).dtype
    operands = list(replicated_with(out, operands))
    regions, place = [], 0
    for number, x in enumerate(operands):
        offset = tuple(place if dimension == axis else 0 for dimension in range(x.ndim))
        regions.append(Region(number, offset, full_ranges(x.shape)))
        place += x.shape[axis]
    shape = (*operands[0].shape[:axis], place, *operands[0].shape[axis + 1 :])
    layouts = [x._layout for x in operands if isinstance(x, ShardedArray)]
    candidates = dict.fromkeys([*layouts, _merged(layouts)])
    result = assemble("concatenate", operands, regions, [ArraySpec(shape, kind, layout) for layout in candidates])
    return result if out is None else write_out(out, result)


def _merged(layouts: Sequence[Layout]) -> Layout:
    """Return a layout with, for each dimension, the first cut that is compatible with the cuts chosen before.

    If an array is on one device only, return the first layout.
    """
    cuts = [WHOLE] * layouts[0].ndim
    for layout in layouts:
        for dimension, cut in enumerate(layout.cuts):
            if cuts[dimension] == WHOLE and covers((*cuts, cut)):
                cuts[dimension] = cut
    return Layout(layouts[0].num_devices, tuple(cuts)) if all(x.only is None for x in layouts) else layouts[0]


def _operand(array: Any) -> Any:
    array = plain(array)
    return materialized(array) if isinstance(array, ShardedArray) else np.asarray(array)


def _fit(operands: Sequence[Any], axis: Any) -> bool:
    ndim = operands[0].ndim
    if any(x.ndim != ndim for x in operands) or not -ndim <= operator.index(axis) < ndim:
        return False
    sizes = [[size for d, size in enumerate(x.shape) if d != axis % ndim] for x in operands]
    return all(others == sizes[0] for others in sizes)


@implements(np.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Implement :func:`numpy.stack`."""
    operands = [_operand(array) for array in arrays]
    if len({x.shape for x in operands}) != 1:
        np.stack([shape_probe(x.shape) for x in operands], axis)  # raises NumPy's error
    raised = [np.expand_dims(x, axis) for x in operands]
    return concatenate(raised, axis, out, dtype=dtype, casting=casting)


def _stacked(at_least: Callable[..., Any], axis_of: Callable[[Any], int]) -> Callable[..., Any]:
    def joined(tup: Any, **kwargs: Any) -> Any:
        arrays = [at_least(_operand(array)) for array in tup]
        return concatenate(arrays, axis_of(arrays[0]), **kwargs)

    return joined


implements(np.vstack)(_stacked(np.atleast_2d, lambda _: 0))
implements(np.hstack)(_stacked(np.atleast_1d, lambda first: int(first.ndim > 1)))
implements(np.dstack)(_stacked(np.atleast_3d, lambda _: 2))
implements(np.column_stack)(_stacked(lambda x: x if x.ndim > 1 else np.atleast_2d(x).T, lambda _: 1))


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Implement :func:`numpy.append`."""
    return concatenate([_operand(arr), _operand(values)], axis)


@implements(np.block)
def block(arrays: Any) -> Any:
    """Implement :func:`numpy.block`."""
    if not isinstance(arrays, list):
        return np.copy(arrays)
    depth = _depth(arrays)
    leaves = list(_leaves(arrays))
    if depth is None or any(isinstance(leaf, tuple) for leaf in leaves):
        return NotImplemented
    return _blocked(arrays, depth, max(depth, *(np.ndim(leaf) for leaf in leaves)))


def _depth(arrays: Any) -> int | None:
    """Return the depth of nested lists; None if it varies, or a list is empty, which NumPy rejects."""
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(inner) for inner in arrays}
    depth = depths.pop() if len(depths) == 1 else None
    return None if depth is None else depth + 1


def _leaves(arrays: Any) -> Any:
    if isinstance(arrays, list):
        for inner in arrays:
            yield from _leaves(inner)
    else:
        yield arrays


def _blocked(arrays: Any, depth: int, ndim: int) -> Any:
    """Concatenate the innermost lists along axis -1, the next level along axis -2, and so on."""
    if depth == 0:
        array = _operand(arrays)
        return array[(None,) * (ndim - array.ndim) + (...,)]
    return concatenate([_blocked(inner, depth - 1, ndim) for inner in arrays], -depth)
