"""How a request for a variable becomes requests for its shards."""

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

__all__ = ["shard_requests"]


def shard_requests(request: VariableRequest, partitioner: Callable[..., Any]) -> list[VariableRequest]:
    """Cut a variable as a partitioner says.

    Parameters
    ----------
    request : VariableRequest
        If its initial value is a callable, and shape and dtype are given, it is asked for each shard by itself, with
        ``partition_shape`` and ``partition_offset``, if it takes them, or with a ``shard_info`` that has both.
    partitioner : callable
        Takes ``shape`` and ``dtype``; gives the number of shards along each axis, which is 1 but for the first.

    Returns
    -------
    list of VariableRequest
        One for each shard, as many as there are rows at most. None if it is not cut, as a variable without dimensions
        or rows never is.

    Raises
    ------
    ValueError
        If the partitioner gives anything else, or the initial value does not fit.

    Examples
    --------
    >>> from ringlet.values.variables.partitioner import FixedShardsPartitioner
    >>> shards = shard_requests(VariableRequest([1.0, 2.0, 3.0], name="v"), FixedShardsPartitioner(2))
    >>> [(shard.name, shard.first_value()) for shard in shards]
    [('v/part_0', array([1., 2.])), ('v/part_1', array([3.]))]
    """
    asked = _full_shape(request)
    is_lazy = callable(request.initial_value) and asked is not None and request.dtype is not None
    if asked is not None and is_lazy:
        shape, dtype = asked, as_dtype(request.dtype)
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
    """The shape that was asked for, if it says all."""
    asked = request.wanted_shape()
    known = () if asked is None else tuple(size for size in asked if size is not None)
    return None if asked is None or len(known) < len(asked) else known


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
    """Which rows of a variable a shard is, for initial values that take a ``shard_info``, as TensorFlow has it."""

    shape: tuple[int, ...]
    offset: tuple[int, ...]


class _LazyParts:
    """Gives functions that make the rows of a shard, alone if the initial value can do that."""

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
        except (TypeError, ValueError) as refusal:  # it does not take them, or not these
            value = self._whole(refusal)
        return value if np.shape(value) == part.shape else value[begin:end]

    def _whole(self, refusal: Exception) -> Any:
        try:
            return self._request.beginning
        except TypeError as error:
            if isinstance(refusal, ValueError):  # it makes parts only, and has found a fault
                raise refusal from error
            raise


def _takes_shard_info(initial_value: Callable[..., Any]) -> bool:
    try:
        return "shard_info" in inspect.signature(initial_value).parameters
    except (TypeError, ValueError):  # it does not tell what it takes
        return False
