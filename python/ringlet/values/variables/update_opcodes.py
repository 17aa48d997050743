"""Functions that compute the new value for each update of a variable, such as ``assign_add``, and their names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.errors import InvalidArgumentError
from ringlet.values.variables.scatter_nd import ALL_SCATTERS
from ringlet.values.variables.storage import Change, quietly, replace

Array = NDArray[Any]


def assign_add(old: Array, value: Any, new: Array) -> None:
    """Update that adds a value; raises InvalidArgumentError if its shape differs."""
    _check_equal_shapes(old, value)
    quietly(np.add, old, value, new)


def assign_sub(old: Array, value: Any, new: Array) -> None:
    """Update that subtracts a value; raises InvalidArgumentError if its shape differs."""
    _check_equal_shapes(old, value)
    quietly(np.subtract, old, value, new)


def _check_equal_shapes(old: Array, value: Any) -> None:
    # Shapes can differ only for variables without a static shape.
    shape = getattr(value, "shape", ())
    if shape != old.shape:
        raise InvalidArgumentError(
            f"Cannot update variable with shape {old.shape} using a value with shape {shape}, shapes must be equal. "
            f"Reshape the value, or broadcast it with np.broadcast_to(value, {old.shape})"
        )


# Method name of each update, for messages.
NAMES: dict[Change, str] = {replace: "assign", assign_add: "assign_add", assign_sub: "assign_sub"}
NAMES.update((change, name) for name, change in ALL_SCATTERS.items())
