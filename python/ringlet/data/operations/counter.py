"""Dataset.counter: an infinite sequence of numbers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from operator import index

import numpy as np
from numpy.typing import DTypeLike

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY
from ringlet.data.graph.sources import TableSource
from ringlet.data.graph.table import RangeColumn, Table
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten


def counter(
    cls: type[Dataset], start: int = 0, step: int = 1, dtype: DTypeLike = np.int64, name: str | None = None
) -> Dataset:
    """Create an infinite dataset of ``start, start + step, ...``.

    Parameters
    ----------
    start : int, default 0
    step : int, default 1
    dtype : dtype, default int64
        A dtype of integers or floats.
    name : str, unused

    Returns
    -------
    Dataset

    Raises
    ------
    InvalidArgumentError
        If `dtype` is not a dtype of integers or floats.
    TypeError
        If `start` or `step` is not an integer.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.counter(start=2, step=5).take(3)]
    [2, 7, 12]
    """
    kind = np.dtype(dtype)
    if kind.kind not in "iuf":
        raise InvalidArgumentError(f"the dtype of Dataset.counter must be an integer or float dtype, got {kind}")
    try:
        column = RangeColumn(index(start), index(step), kind)
    except TypeError:
        raise TypeError(f"start and step of Dataset.counter must be integers, got {start!r} and {step!r}") from None
    return cls(Counter(Table((column,), flatten(0)[1], sys.maxsize)))


@dataclass(frozen=True, eq=False)
class Counter(TableSource):
    """Node that yields infinitely many numbers: the rows of a table of the maximum length."""

    cardinality = INFINITE_CARDINALITY
