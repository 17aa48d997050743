"""Differences of adjacent elements along a dimension: slices and a subtraction."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.execution.shape_inference import shape_probe
from ringlet.sharding.ops.pointwise import operand

__all__ = ["diff"]


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    """Implement :func:`numpy.diff`."""
    x = operand(a)
    if n == 0:
        return a
    np.diff(shape_probe((1,) * x.ndim), n, axis)  # raises NumPy's error
    axis = operator.index(axis) % x.ndim
    ends = [_end(prepend, x, axis), x, _end(append, x, axis)]
    given = [end for end in ends if end is not None]
    if len(given) > 1:
        x = np.concatenate(given, axis)
    subtract = np.not_equal if x.dtype == bool else np.subtract
    later, earlier = ((slice(None),) * axis + (side,) for side in (slice(1, None), slice(None, -1)))
    for _ in range(n):
        x = subtract(x[later], x[earlier])
    return x


def _end(value: Any, x: Any, axis: int) -> Any:
    """Return the array to prepend or append, from an array or a single value."""
    if value is np._NoValue:
        return None
    value = value if hasattr(value, "shape") else np.asanyarray(value)
    if value.ndim == 0:
        return np.broadcast_to(value, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    return value
