"""Unique elements and sets, by a sort over all devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.ops.elementwise import operand
from ringlet.sharding.ops.selection import flatnonzero, select_rows
from ringlet.sharding.ops.sorting import sorted_line
from ringlet.sharding.resharding.pencils import everywhere, rows_of


@implements(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,  # NumPy's name
) -> Any:
    """Implement :func:`numpy.unique` for all elements; along an axis, arrays are gathered."""
    if axis is not None or ar.dtype.hasobject or ar.dtype.names is not None:
        return NotImplemented
    line = rows_of(ar, ar.ndim) if ar.ndim else ar.reshape(1)
    if return_index or return_inverse:
        records = sorted_line(line)
        values, places = records["value"], records["index"]
    else:
        values, places = sorted_line(line, records=False), None
    is_first = np.ones_like(values, bool)
    if line.size > 1:
        is_other = values[1:] != values[:-1]
        if equal_nan and values.dtype.kind in "fcmM":
            is_other = is_other & ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
        is_first[1:] = is_other
    results: list[Any] = [select_rows(values, is_first)]
    if return_index:
        results.append(select_rows(places, is_first))
    if return_inverse:
        number = np.cumsum(is_first) - 1
        results.append(np.reshape(np.take(number, np.argsort(places)), ar.shape))
    if return_counts:
        results.append(np.diff(flatnonzero(is_first), append=line.size))
    return tuple(results) if len(results) > 1 else results[0]


@implements(np.setdiff1d)
def _setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    first = np.ravel(operand(ar1)) if assume_unique else np.unique(operand(ar1))
    return first[np.isin(first, everywhere(operand(ar2)), assume_unique=assume_unique, invert=True)]
