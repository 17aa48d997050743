"""What assignments do to the memory of a variable, and what messages call each of these changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.errors import InvalidArgumentError
from ringlet.values.indexed_slices import SCATTERS
from ringlet.values.variables.storage import Change, quietly, replace

__all__ = ["NAMES", "assign_add", "assign_sub"]

Array = NDArray[Any]


def assign_add(old: Array, value: Any, new: Array) -> None:
    """The change that adds a value of the same shape.

    Raises
    ------
    InvalidArgumentError
        If it has another one.

    Examples
    --------
    >>> total = np.array([1.0, 2.0])
    >>> assign_add(total, np.array([10.0, 10.0]), total)
    >>> total
    array([11., 12.])
    """
    _check_equal_shapes(old, value)
    quietly(np.add, old, value, new)


def assign_sub(old: Array, value: Any, new: Array) -> None:
    """The change that subtracts a value of the same shape; errors are those of :func:`assign_add`.

    Examples
    --------
    >>> total = np.array([1.0, 2.0])
    >>> assign_sub(total, np.array([10.0, 10.0]), total)
    >>> total
    array([-9., -8.])
    """
    _check_equal_shapes(old, value)
    quietly(np.subtract, old, value, new)


def _check_equal_shapes(old: Array, value: Any) -> None:
    # Only variables whose shape may change come here with values of another one.
    shape = getattr(value, "shape", ())
    if shape != old.shape:
        raise InvalidArgumentError(
            f"Cannot update variable with shape {old.shape} using a value with shape {shape}, shapes must be equal. "
            f"Reshape the value, or broadcast it with np.broadcast_to(value, {old.shape})"
        )


# What messages call a change.
NAMES: dict[Change, str] = {replace: "assign", assign_add: "assign_add", assign_sub: "assign_sub"}
NAMES.update((change, name) for name, change in SCATTERS.items())
