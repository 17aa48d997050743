"""Combination of the parts of a partial array into its values."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.collectives import Op, all_reduce_buffers
from ringlet.collectives.collective_dtypes import is_supported
from ringlet.sharding.layout.layout import Array
from ringlet.sharding.memory_modes import is_planning

_UFUNCS: dict[Op, np.ufunc] = {
    Op.SUM: np.add,
    Op.PROD: np.multiply,
    Op.MIN: np.minimum,
    Op.MAX: np.maximum,
    Op.AND: np.bitwise_and,
    Op.OR: np.bitwise_or,
    Op.XOR: np.bitwise_xor,
}


def combine(parts: Sequence[Array], op: Op, out: Array) -> None:
    """Combine parts into `out`, which may be a part, in the order of a balanced binary tree: ``(0 + 1) + (2 + 3)``.

    16-bit floats are combined as float32 and rounded once.
    """
    if out.size == 0 or is_planning():
        return
    if is_supported(out.dtype, op):
        all_reduce_buffers(parts, op, out=out)
    else:
        out[...] = _tree(list(parts), _UFUNCS[op])


def _tree(parts: list[Any], ufunc: np.ufunc) -> Any:
    while len(parts) > 1:
        pairs = [ufunc(parts[i], parts[i + 1]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def identity(op: Op, dtype: np.dtype[Any]) -> Any:
    """Return the neutral element of an operation."""
    if op in (Op.MIN, Op.MAX):
        is_least = op is Op.MAX
        if dtype.kind in "iu":
            bounds = np.iinfo(dtype)
            return dtype.type(bounds.min if is_least else bounds.max)
        if dtype.kind == "b":
            return dtype.type(not is_least)
        bound = dtype.type(-np.inf if is_least else np.inf)
        if not np.isnan(bound):
            return bound
        limits = sys.modules[dtype.type.__module__].finfo(dtype)  # this ml_dtypes format has no infinity
        return limits.min if is_least else limits.max
    if op is Op.AND:
        return dtype.type(True) if dtype.kind == "b" else np.invert(np.zeros((), dtype))[()]
    return dtype.type(op is Op.PROD)
