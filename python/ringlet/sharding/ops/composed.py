"""NumPy functions composed of other functions, such as comparisons, differences and splits."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements, numpy_function
from ringlet.sharding.execution.shape_inference import shape_probe
from ringlet.sharding.ops.elementwise import operand
from ringlet.sharding.resharding.pencils import rows_of
from ringlet.sharding.sharded_array import ShardedArray


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Implement :func:`numpy.array_equal`."""
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
    """Implement :func:`numpy.array_equiv`."""
    first, second = operand(a1), operand(a2)
    try:
        np.broadcast_shapes(np.shape(first), np.shape(second))
    except ValueError:
        return False
    return bool(np.all(first == second))


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Implement :func:`numpy.allclose`."""
    return bool(np.all(np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)))


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    """Implement :func:`numpy.diff`."""
    x = operand(a)
    if n == 0:
        return a
    np.diff(shape_probe((1,) * x.ndim), n, axis)  # raises NumPy's error for an invalid order or axis
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
    if value is np._NoValue:
        return None
    value = value if hasattr(value, "shape") else np.asanyarray(value)
    if value.ndim == 0:
        return np.broadcast_to(value, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    return value


# NumPy implements these functions in Python with slices and swapaxes, which also work on sharded arrays.
for _name in ("array_split", "split", "hsplit", "vsplit", "dsplit", "unstack"):
    _function = numpy_function(_name)
    if _function is not None:
        implements(_function)(_function._implementation)  # type: ignore[attr-defined]


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Implement :func:`numpy.ediff1d`."""
    x = rows_of(ary, ary.ndim) if isinstance(ary, ShardedArray) and ary.ndim else np.ravel(operand(ary))
    ends = [None if end is None else np.ravel(operand(end)) for end in (to_begin, to_end)]
    if any(end is not None and not np.can_cast(end.dtype, x.dtype, "same_kind") for end in ends):
        np.ediff1d(np.empty(0, x.dtype), *ends[::-1])  # raises NumPy's error
    before, after = ([] if end is None else [end.astype(x.dtype)] for end in ends)
    return np.concatenate([*before, np.diff(x), *after]) if before or after else np.diff(x)


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Implement :func:`numpy.corrcoef`."""
    c = np.cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    deviations = np.sqrt(np.diag(c).real)
    c = c / deviations[:, None] / deviations[None, :]
    if c.dtype.kind != "c":
        return np.clip(c, -1, 1)
    return np.clip(c.real, -1, 1) + 1j * np.clip(c.imag, -1, 1)


@implements(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:  # noqa: N803  # NumPy's name
    """Implement :func:`numpy.vander`."""
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    number = len(x) if N is None else N
    dtype = np.promote_types(x.dtype, int)
    if number < 1:
        return np.zeros_like(x, dtype, shape=(len(x), 0))
    powers = np.broadcast_to(x.astype(dtype)[:, None], (len(x), number - 1))
    ones = np.ones_like(x, dtype)[:, None]
    made = np.multiply.accumulate(np.concatenate([ones, powers], axis=1), axis=1)
    return made if increasing else np.flip(made, 1)
