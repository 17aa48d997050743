"""Checks of counts that users pass to operations."""

from __future__ import annotations

from operator import index
from typing import Any

from ringlet.errors import InvalidArgumentError

ALL = -1

AUTOTUNE = -1
"""A number that the library chooses (``tf.data.AUTOTUNE``)."""


def positive(value: Any, name: str, hint: str = "") -> int:
    """Return a count as an int; raise an error unless it is positive."""
    count = whole(value, name)
    if count < 1:
        raise InvalidArgumentError(f"{name} must be greater than zero, got {count}.{hint}")
    return count


def count_or_all(value: Any, name: str) -> int:
    """Return a count; a negative count becomes -1, which means all elements, as in TensorFlow."""
    return max(whole(value, name), ALL)


def check_buffer_size(value: Any) -> int:
    """Return a buffer size: nonnegative, or AUTOTUNE; None means AUTOTUNE."""
    size = AUTOTUNE if value is None else whole(value, "buffer_size")
    if size < AUTOTUNE:
        raise InvalidArgumentError(
            f"buffer_size must be zero or more, or AUTOTUNE ({AUTOTUNE}) for an automatic size, got {size}."
        )
    return size


def check_parallel_calls(value: Any) -> None:
    """Check a number of concurrent calls: None, AUTOTUNE or positive."""
    if value is None or whole(value, "num_parallel_calls") == AUTOTUNE:
        return
    positive(value, "num_parallel_calls", f" AUTOTUNE ({AUTOTUNE}) lets the library choose.")


def whole(value: Any, name: str, expected: str = "an integer") -> int:
    """Convert an integer argument to an int."""
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"{name} must be {expected}, got {value!r}") from None
