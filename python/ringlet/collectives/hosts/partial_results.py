"""Partial results of reductions: how values are combined in each host, between hosts, and finished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.collectives.collective_dtypes import as_result
from ringlet.collectives.op import Op

__all__ = ["combine", "finish", "partial_dtype", "partial_op"]

Array = np.ndarray[Any, np.dtype[Any]]


def partial_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of partial results: float32 for floats of 8 and 16 bits, which are rounded once, at the end."""
    is_narrow = dtype == np.float16 or dtype.type.__module__ == "ml_dtypes"
    return np.dtype(np.float32) if is_narrow else dtype


def partial_op(op: Op) -> Op:
    """Return the operation of partial results: the sum, for a mean."""
    return Op.SUM if op is Op.MEAN else op


def combine(partials: Sequence[Array], op: Op, out: Array) -> None:
    """Combine the partial results of all hosts in the order ((0+1)+(2+3))+((4+5)+...)."""
    if len(partials) == 1:
        out[...] = partials[0]
    else:
        _core.reduce_buffers(partials, partial_op(op).value, out)


def finish(total: Array, op: Op, num_ranks: int, dtype: np.dtype[Any], out: Array) -> None:
    """Store the result for inputs of `dtype`: a mean is divided once; narrow floats are rounded once."""
    if op is not Op.MEAN and out is total:
        return
    with np.errstate(all="ignore"):
        if op is Op.MEAN:
            total = total.astype(partial_dtype(as_result(dtype, op)), copy=False)
            if total.dtype.kind == "c":  # NumPy divides complex numbers by another formula
                total = total.view(total.real.dtype)
                out = out.view(total.dtype)
            total = total / total.dtype.type(num_ranks)
        out[...] = total
