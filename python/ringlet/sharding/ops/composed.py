"""NumPy functions that call others: comparisons, differences, splits, and changes of gathered arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import first_given, gathered, implements, numpy_function
from ringlet.sharding.execution.shape_inference import shape_probe
from ringlet.sharding.ops.elementwise import operand
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
    if value is np._NoValue:
        return None
    value = value if hasattr(value, "shape") else np.asanyarray(value)
    if value.ndim == 0:
        return np.broadcast_to(value, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    return value


# The Python bodies of these functions consist of slices and swapped axes.
for _name in ("array_split", "split", "hsplit", "vsplit", "dsplit", "unstack"):
    _function = numpy_function(_name)
    if _function is not None:
        implements(_function)(_function._implementation)  # type: ignore[attr-defined]


def _changed(function: Callable[..., Any]) -> Callable[..., Any]:
    name = f"np.{function.__name__}"

    def implementation(array: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(array, ShardedArray):
            return NotImplemented
        array._writable_buffers()
        whole = np.array(gathered(name, array))
        function(whole, *gathered(name, args), **gathered(name, kwargs))
        array[...] = whole
        return None

    return first_given(function, implementation)


for _function in (np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask):
    implements(_function)(_changed(_function))
