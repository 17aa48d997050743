"""Split and its family: slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringlet.sharding.execution.array_function_table import implements, numpy_function

__all__: list[str] = []


def _own_body(function: Callable[..., Any]) -> Callable[..., Any]:
    """What NumPy runs for arrays of its own: here it consists of slices and swapped axes, which sharded arrays have."""
    body: Callable[..., Any] = function._implementation  # type: ignore[attr-defined]
    return body


for _name in ("array_split", "split", "hsplit", "vsplit", "dsplit", "unstack"):
    _function = numpy_function(_name)
    if _function is not None:
        implements(_function)(_own_body(_function))
