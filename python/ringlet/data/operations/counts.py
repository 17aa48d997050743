"""How the operations read a count that a user gave."""

from __future__ import annotations

from operator import index
from typing import Any

from ringlet.errors import InvalidArgumentError

__all__ = ["AUTOTUNE", "check_parallel_calls", "count_or_all", "positive"]

ALL = -1

AUTOTUNE = -1
"""Let the library choose a number (``tf.data.AUTOTUNE``)."""


def positive(value: Any, name: str, hint: str = "") -> int:
    """Give a count that must be one or more.

    Raises
    ------
    InvalidArgumentError
        If it is less.
    TypeError
        If it is no integer.

    Examples
    --------
    >>> positive(3, "batch_size")
    3
    """
    count = _integer(value, name)
    if count < 1:
        raise InvalidArgumentError(f"{name} must be greater than zero, got {count}.{hint}")
    return count


def count_or_all(value: Any, name: str, meaning: str) -> int:
    """Give a count that may be zero, or -1, which stands for `meaning`.

    Raises
    ------
    InvalidArgumentError
        If it is less than -1.
    TypeError
        If it is no integer.

    Examples
    --------
    >>> count_or_all(-1, "count", "all elements")
    -1
    """
    count = _integer(value, name)
    if count < ALL:
        raise InvalidArgumentError(f"{name} must be zero or more, or -1 for {meaning}, got {count}.")
    return count


def check_parallel_calls(value: Any) -> None:
    """Check how many calls of a function may run at once: None, AUTOTUNE, or one or more.

    Raises
    ------
    InvalidArgumentError
        If it is another number.
    TypeError
        If it is no integer.

    Examples
    --------
    >>> check_parallel_calls(None), check_parallel_calls(AUTOTUNE), check_parallel_calls(4)
    (None, None, None)
    """
    if value is None or _integer(value, "num_parallel_calls") == AUTOTUNE:
        return
    positive(value, "num_parallel_calls", f" AUTOTUNE ({AUTOTUNE}) lets the library choose.")


def _integer(value: Any, name: str) -> int:
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
