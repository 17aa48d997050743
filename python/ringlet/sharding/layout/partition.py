"""Partition dimensions: the checks of ``experimental_split_to_logical_devices``, made in TensorFlow's order."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence, Set
from numbers import Real
from typing import Any

import numpy as np

from ringlet.collectives.argument_parsing import shortened
from ringlet.errors import PartitionError


def check_partition(shape: Sequence[int | None], partition_dimensions: Any, num_devices: int) -> list[int]:
    """Check that partition dimensions divide a tensor into equal tiles, one for each logical device; return them.

    Unknown sizes (None) are not checked. Raises PartitionError or TypeError, in the order of TensorFlow's
    ``experimental_split_to_logical_devices`` (``tensorflow/python/distribute/tpu_strategy.py``).
    """
    given = _listed(shape, partition_dimensions)
    if len(given) != len(shape):
        raise PartitionError(
            f"Length of `partition_dimensions` must equal to the rank of `tensor.shape` ({len(shape)}). Received "
            f"len(partition_dimensions)={len(given)}. Pass one number of tiles for each dimension of {_shown(shape)}, "
            "1 for one that is not divided"
        )
    numbers = [number if type(number) is int else _real_number(number) for number in given]
    if None in numbers:
        raise _no_numbers(shape, partition_dimensions)
    for dimension, (size, number) in enumerate(zip(shape, numbers, strict=True)):
        if size is not None and (number == 0 or size % number):
            raise PartitionError(
                f"Tensor shape at `partition_dimensions[{dimension}]` must be divisible by corresponding value "
                f"specified by `partition_dimensions` ({number}). Received: {size}. {_remedy(size, number)}"
            )
    product = math.prod(numbers)
    if product != num_devices:
        raise PartitionError(
            "The product of `partition_dimensions` should be the same as the number of logical devices "
            f"(={num_devices}). Received `partition_dimensions`={partition_dimensions}, and their product is "
            f"{product}. Each logical device of a replica holds one tile"
        )
    parts = [number for number in numbers if type(number) is int]
    if len(parts) != len(numbers):
        raise _no_numbers(shape, partition_dimensions)
    if any(part < 1 for part in parts):
        raise PartitionError(
            f"partition_dimensions are {partition_dimensions}: a dimension can only be divided into one or more "
            "tiles. Write 1 for a dimension that is not divided"
        )
    return parts


def whole_number(value: Any) -> int | None:
    """Convert a whole number to a Python int; return None for other values, including Booleans and 2.0."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _real_number(value: Any) -> Any:
    whole = whole_number(value)
    if whole is not None:
        return whole
    return value if isinstance(value, (Real, np.bool_)) else None


def _listed(shape: Sequence[int | None], partition_dimensions: Any) -> list[Any]:
    if isinstance(partition_dimensions, (list, tuple)):
        return list(partition_dimensions)
    # Sets are unordered, and the keys of a dictionary are unlikely to be intended.
    is_list = not isinstance(partition_dimensions, (str, bytes, Set, Mapping))
    try:
        if is_list and len(partition_dimensions) >= 0:
            return list(partition_dimensions)
    except TypeError:  # numbers and 0-d arrays have no length
        pass
    raise _no_numbers(shape, partition_dimensions)


def _no_numbers(shape: Sequence[int | None], partition_dimensions: Any) -> TypeError:
    return TypeError(
        f"partition_dimensions is {shortened(partition_dimensions)}: expected a list of integers, the number of tiles "
        f"along each dimension of shape {_shown(shape)}, such as {[1] * len(shape)}"
    )


def _shown(shape: Sequence[int | None]) -> str:
    return str(tuple(shape))


def _remedy(size: int, part: Any) -> str:
    if whole_number(part) is None or part < 1:
        return "Write 1 for a dimension that is not divided"
    return f"Choose a divisor of {size}, or pad the dimension to {-(-size // part) * part} first"
