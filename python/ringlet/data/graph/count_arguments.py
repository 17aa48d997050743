"""Checks of counts that users pass to operations."""

from __future__ import annotations

from operator import index
from typing import Any

from ringlet.errors import InvalidArgumentError

__all__ = ["AUTOTUNE", "check_buffer_size", "check_parallel_calls", "count_or_all", "positive"]

ALL = -1

AUTOTUNE = -1
"""A number that the library chooses (``tf.data.AUTOTUNE``)."""


def positive(value: Any, name: str, hint: str = "") -> int:
    """Check a count that must be one or more."""
    count = _integer(value, name)
    if count < 1:
        raise InvalidArgumentError(f"{name} must be greater than zero, got {count}.{hint}")
    return count


def count_or_all(value: Any, name: str) -> int:
    """Return a count; a negative count becomes -1, which means all elements, as in TensorFlow."""
    return max(_integer(value, name), ALL)


def check_buffer_size(value: Any) -> int:
    """Return the size of a buffer: zero or more, or AUTOTUNE, which is also the meaning of None."""
    size = AUTOTUNE if value is None else _integer(value, "buffer_size")
    if size < AUTOTUNE:
        raise InvalidArgumentError(
            f"buffer_size must be zero or more, or AUTOTUNE ({AUTOTUNE}) for an automatic size, got {size}."
        )
    return size


def check_parallel_calls(value: Any) -> None:
    """Check a number of concurrent calls: None, AUTOTUNE, or one or more."""
    if value is None or _integer(value, "num_parallel_calls") == AUTOTUNE:
        return
    positive(value, "num_parallel_calls", f" AUTOTUNE ({AUTOTUNE}) lets the library choose.")


def _integer(value: Any, name: str) -> int:
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
