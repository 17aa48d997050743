"""Dataset.range: evenly spaced integers."""

from __future__ import annotations

import builtins
import sys
from operator import index
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.sources import TableSource
from ringlet.data.graph.table import RangeColumn, Table
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten

# The largest length of a Python object.
MOST_ELEMENTS = sys.maxsize


def range(cls: type[Dataset], *args: int, output_type: DTypeLike = np.int64, name: str | None = None) -> Dataset:
    """Create a dataset of evenly spaced integers, like Python's ``range``.

    Parameters
    ----------
    *args : int
        ``stop``, or ``start, stop``, or ``start, stop, step``.
    output_type : dtype, default int64
        A dtype of integers or floats.
    name : str, unused

    Returns
    -------
    Dataset
        Its elements are scalars, computed on request.

    Raises
    ------
    InvalidArgumentError
        If the step is zero, `output_type` is not a dtype of integers or floats, a number does not fit into it, or there
        are more than ``sys.maxsize`` numbers. Floats are limited to the range of int64 and rounded if necessary.
    TypeError
        If an argument is not an integer, or the number of arguments is not one, two or three.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.range(10, 0, -4)]
    [10, 6, 2]
    >>> Dataset.range(5).element_spec
    TensorSpec(shape=(), dtype=int64)
    """
    if not 1 <= len(args) <= 3:
        raise TypeError(
            f"Dataset.range takes stop, or start and stop, or start, stop and step, got {len(args)} numbers"
        )
    try:
        numbers = tuple(map(index, args))
    except TypeError:
        raise TypeError(f"Dataset.range takes integers, got {', '.join(map(repr, args))}") from None
    if numbers[2:] == (0,):
        raise InvalidArgumentError(
            f"the step of Dataset.range{numbers} must not be 0: such a range never reaches {numbers[1]}"
        )
    span = builtins.range(*numbers)
    dtype = np.dtype(output_type)
    _check_fit(span, dtype)
    column = RangeColumn(span.start, span.step, dtype)
    return cls(TableSource(Table((column,), flatten(0)[1], len(span))))


def _check_fit(span: builtins.range, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "iuf":
        raise InvalidArgumentError(f"the output_type of Dataset.range must be an integer or float dtype, got {dtype}")
    lowest, highest = _limits(dtype)
    for number in (span[0], span[-1]) if span else ():
        if not lowest <= number <= highest:
            raise InvalidArgumentError(
                f"{span} holds {number}, which does not fit into {dtype}: only numbers from {lowest} to {highest} fit. "
                "Choose another output_type, or use smaller numbers and add an offset in a map."
            )
    if span and (span[-1] - span[0]) // span.step >= MOST_ELEMENTS:
        raise InvalidArgumentError(f"{span} holds more numbers than the maximum length of a dataset, {MOST_ELEMENTS}")


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    # Float elements are converted from int64, but float16 has a smaller range.
    whole, largest = np.iinfo(np.int64), int(np.finfo(dtype).max)
    return max(int(whole.min), -largest), min(int(whole.max), largest)
