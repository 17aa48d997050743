"""Partitioning of a variable request into requests for its shards."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringlet.values.value_conversion import as_dtype
from ringlet.values.variables.sharded_variable import shard_sizes
from ringlet.values.variables.variable_spec import VariableRequest


def shard_requests(request: VariableRequest, partitioner: Callable[..., Any]) -> list[VariableRequest]:
    """Return the requests for the shards that a partitioner specifies; empty if the variable is not sharded.

    If the request has a shape and a dtype, a callable initial value is called for each shard, with ``partition_shape``
    and ``partition_offset``, or with a ``shard_info`` of both, depending on its parameters.
    """
    requested = _full_shape(request)
    is_lazy = callable(request.initial_value) and requested is not None and request.dtype is not None
    if requested is not None and is_lazy:
        shape, dtype = requested, as_dtype(request.dtype)
    else:
        value = request.first_value()
        shape, dtype = value.shape, value.dtype
    if not shape:
        return []
    rows = shape[0]
    count = _checked_count(partitioner(shape=shape, dtype=dtype))
    if count == 1 or not rows:
        return []
    part = _LazyParts(request, shape) if is_lazy else _parts_of(request.first_value())
    sizes = shard_sizes(rows, min(count, rows))
    begins = [0, *itertools.accumulate(sizes)]
    return [
        dataclasses.replace(
            request,
            initial_value=part(begin, begin + size),
            shape=(size, *shape[1:]),
            name=None if request.name is None else f"{request.name}/part_{i}",
        )
        for i, (begin, size) in enumerate(zip(begins, sizes, strict=False))
    ]


def _full_shape(request: VariableRequest) -> tuple[int, ...] | None:
    """Return the requested shape if it is fully defined, else None."""
    shape = request.wanted_shape()
    known = () if shape is None else tuple(size for size in shape if size is not None)
    return None if shape is None or len(known) < len(shape) else known


def _checked_count(partitions: Any) -> int:
    is_list = isinstance(partitions, Sequence) and not isinstance(partitions, (str, bytes))
    numbers = list(partitions) if is_list else []
    is_whole = all(isinstance(number, (int, np.integer)) for number in numbers)
    if not numbers or not is_whole or numbers[0] < 1 or any(number != 1 for number in numbers[1:]):
        raise ValueError(
            "variable_partitioner must return a list/tuple whose elements are 1 besides the first element (non-zero), "
            f"got: {partitions!r}. The first is the number of shards, at least 1"
        )
    return int(numbers[0])


def _parts_of(value: Any) -> Callable[[int, int], Any]:
    return lambda begin, end: value[begin:end]


class ShardInfo(NamedTuple):
    """Shape and offset of a shard, passed to initial values that take a ``shard_info``, as in TensorFlow."""

    shape: tuple[int, ...]
    offset: tuple[int, ...]


class _LazyParts:
    """Creates functions that compute the rows of a shard, or slice all rows if the initial value takes no offset."""

    def __init__(self, request: VariableRequest, shape: tuple[int, ...]) -> None:
        self._request, self._rest = request, shape[1:]

    def __call__(self, begin: int, end: int) -> Callable[[], Any]:
        return lambda: self._rows(begin, end)

    def _rows(self, begin: int, end: int) -> Any:
        part = ShardInfo((end - begin, *self._rest), (begin, *(0 for _ in self._rest)))
        initial_value = self._request.initial_value
        if _takes_shard_info(initial_value):
            return initial_value(shard_info=part)
        try:
            value = initial_value(partition_shape=part.shape, partition_offset=part.offset)
        except (TypeError, ValueError) as error:  # the callable does not take these arguments, or rejects their values
            value = self._whole(error)
        return value if np.shape(value) == part.shape else value[begin:end]

    def _whole(self, part_error: Exception) -> Any:
        try:
            return self._request.beginning
        except TypeError as error:
            if isinstance(part_error, ValueError):  # the callable supports parts, but rejected this part
                raise part_error from error
            raise


def _takes_shard_info(initial_value: Callable[..., Any]) -> bool:
    try:
        return "shard_info" in inspect.signature(initial_value).parameters
    except (TypeError, ValueError):  # the callable has no signature
        return False
