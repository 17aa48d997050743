"""Comparisons of whole arrays: elements tile by tile, and one answer for all, a plain truth value."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.ops.pointwise import operand

__all__ = ["allclose", "array_equal", "array_equiv"]


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Do what :func:`numpy.array_equal` does."""
    first, second = operand(a1), operand(a2)
    if np.shape(first) != np.shape(second):
        return False
    equal = first == second
    if equal_nan and _may_be_nan(first) and _may_be_nan(second):
        equal = equal | (np.isnan(first) & np.isnan(second))
    return bool(np.all(equal))


def _may_be_nan(x: Any) -> bool:
    return np.result_type(x).kind in "fcmM"


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> bool:
    """Do what :func:`numpy.array_equiv` does."""
    first, second = operand(a1), operand(a2)
    try:
        np.broadcast_shapes(np.shape(first), np.shape(second))
    except ValueError:
        return False
    return bool(np.all(first == second))


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Do what :func:`numpy.allclose` does."""
    return bool(np.all(np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)))
