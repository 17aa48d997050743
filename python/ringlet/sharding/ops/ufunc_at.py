"""``ufunc.at`` for sharded indices and values: each device applies its own part, and the results are combined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ringlet.collectives import Op
from ringlet.sharding.execution.propagation import TileBoxes, plan
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.explain_operations import recording_suspended
from ringlet.sharding.layout.factors import FactorMap, Labels
from ringlet.sharding.layout.layout import Array, Layout
from ringlet.sharding.ops.elementwise import result_dtypes
from ringlet.sharding.reductions.reductions import LOGICAL, op_of
from ringlet.sharding.resharding.partial_combine import identity
from ringlet.sharding.resharding.reshard import materialized, redistribute
from ringlet.sharding.resharding.transfers import moved_bytes
from ringlet.sharding.sharded_array import ShardedArray


class Scatter(NamedTuple):
    """A call of ``ufunc.at`` that allows any order, up to rounding; `op` combines the results of devices.

    `operands` are broadcastable integer arrays, the indices of the first dimensions of `target`, and the values.
    `labels` has the labels of the operands and of the result: ``("i", d)`` for dimension `d` of the indices, ``("t",
    d)`` for dimension `d` of the target.
    """

    ufunc: np.ufunc
    op: Op
    target: Any
    operands: list[Any]
    labels: tuple[Labels, ...]

    @property
    def factor_map(self) -> FactorMap:
        """Return the factors: if indices stay divided, the result is partial."""
        *operands, result = self.labels
        indices = [label for given in operands[:-1] for label in given if label is not None]
        return FactorMap(tuple(operands), result, dict.fromkeys(indices, self.op))

    @property
    def nbytes(self) -> int:
        """Bytes sent by all devices."""
        target, operands = self.target, self.operands
        shapes = tuple(np.shape(x) for x in operands)
        layouts = tuple(x._layout if isinstance(x, ShardedArray) else None for x in operands)
        itemsizes = tuple(x.itemsize if isinstance(x, ShardedArray) else 0 for x in operands)
        chosen = plan(self.factor_map, shapes, itemsizes, layouts, target.dtype.itemsize, result_shape=target.shape)
        is_sharded = isinstance(target, ShardedArray)
        wanted = target._layout if is_sharded else Layout.replicated(chosen.result_layout.num_devices, target.ndim)
        each = zip(shapes, itemsizes, layouts, chosen.operand_layouts, strict=True)
        sent = sum(moved_bytes(shape, size, layout, on) for shape, size, layout, on in each if layout is not None)
        return sent + moved_bytes(target.shape, target.dtype.itemsize, chosen.result_layout, wanted)


def scatter_of(ufunc: np.ufunc, target: Any, key: Any, values: Sequence[Any]) -> Scatter | None:
    """Return a call of ``ufunc.at`` that allows any order, up to rounding; None for all other calls."""
    is_array = isinstance(target, ShardedArray) or (type(target) in (np.ndarray, np.memmap) and target.flags.writeable)
    if not is_array or len(values) != 1 or not target.dtype.isnative:
        return None
    indices = [x if isinstance(x, ShardedArray) else np.asarray(x) for x in (key if isinstance(key, tuple) else (key,))]
    value = values[0] if hasattr(values[0], "dtype") or np.isscalar(values[0]) else np.asarray(values[0])
    op = _op(ufunc, target.dtype, value)
    if op is None or not 0 < len(indices) <= target.ndim or any(x.dtype.kind not in "iu" for x in indices):
        return None
    rest = target.shape[len(indices) :]
    try:
        taken = np.broadcast_shapes(*(x.shape for x in indices))
        if np.broadcast_shapes(np.shape(value), (*taken, *rest)) != (*taken, *rest):
            return None
    except ValueError:
        return None
    first = [("i", d) for d in range(len(taken))]
    last = [("t", d) for d in range(len(indices), target.ndim)]
    labels = [_aligned(x.shape, first, taken) for x in indices]
    labels += [_aligned(np.shape(value), first + last, taken + rest), (*[None] * len(indices), *last)]
    return Scatter(ufunc, op, target, [*indices, value], tuple(labels))


def _op(ufunc: np.ufunc, dtype: np.dtype[Any], value: Any) -> Op | None:
    """Return the combining operation; None if the order of updates matters by more than the rounding of floats."""
    if ufunc in LOGICAL and dtype.kind != "b":
        return None
    op = op_of(np.add if ufunc is np.subtract and dtype.kind != "b" else ufunc, dtype)
    try:
        (computed,) = result_dtypes(ufunc, [dtype, getattr(value, "dtype", type(value))], {})
    except TypeError:  # the fallback to NumPy raises the error again
        return None
    wraps = op in (Op.SUM, Op.PROD) and computed.kind in "iu" and dtype.kind in "iu"
    return op if computed == dtype or wraps or (computed.kind == dtype.kind and dtype.kind in "fc") else None


def _aligned(shape: Sequence[int], labels: Sequence[Any], sizes: Sequence[int]) -> Labels:
    skipped = len(labels) - len(shape)
    each = zip(shape, labels[skipped:], sizes[skipped:], strict=True)
    return tuple(label if size == whole else None for size, label, whole in each)


def cost_of_gathering(arrays: Sequence[Any]) -> int:
    """Return the number of bytes sent to gather the sharded arrays on every device."""
    return sum(
        moved_bytes(x.shape, x.dtype.itemsize, x._layout, Layout.replicated(x._layout.num_devices, x.ndim))
        for x in arrays
        if isinstance(x, ShardedArray)
    )


def is_in_bounds(call: Scatter) -> bool:
    """Return whether all indices are in the target's bounds; the result is the same on all devices and processes."""
    sizes = zip(call.operands[:-1], call.target.shape, strict=False)
    with recording_suspended():
        return not any(bool(np.any((x < -size) | (x >= size))) for x, size in sizes)


def scatter(call: Scatter) -> None:
    """Run ``ufunc.at`` for indices that are in bounds."""
    ufunc, op, target, operands, _ = call
    # Sums of floats start from -0.0, because 0.0 + -0.0 would be 0.0.
    start = -np.zeros((), target.dtype) if target.dtype.kind in "fc" and op is Op.SUM else identity(op, target.dtype)

    def kernel(tiles: list[Any], place: Array, _: TileBoxes) -> None:
        place[...] = start
        update_at(ufunc, place, tuple(tiles[:-1]), tiles[-1])

    name = f"{ufunc.__name__}.at"
    total = apply(name, call.factor_map, kernel, operands, target.dtype, shape=target.shape)
    if not isinstance(target, ShardedArray):
        total = redistribute(materialized(total), Layout.replicated(total._layout.num_devices, total.ndim))._gathered()
    (np.add if ufunc is np.subtract else ufunc)(target, total, out=target)


def update_at(ufunc: np.ufunc, target: Array, key: Any, *values: Any) -> None:
    """Run ``ufunc.at`` on plain arrays; avoids a bug in NumPy 2.4, which reads past the end of repeated values."""
    index = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if target.ndim == 1 and isinstance(index, np.ndarray) and index.dtype.kind in "iu":
        values = tuple(np.broadcast_to(value, index.shape) if np.ndim(value) else value for value in values)
    ufunc.at(target, key, *values)
