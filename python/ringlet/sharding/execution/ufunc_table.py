"""Which methods of NumPy's ufuncs run tile by tile: the table that ``__array_ufunc__`` looks in."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

__all__ = ["Handler", "handler_of", "implements_ufunc", "is_cached"]

Handler = Callable[[np.ufunc, "tuple[Any, ...]", "dict[str, Any]"], Any]
H = TypeVar("H", bound=Handler)

# The modules that register what they implement; loaded when the first method is called.
_HOMES: tuple[str, ...] = (
    "ops.elementwise",
    "ops.ufunc_methods",
    "products.gufuncs",
    "reductions.reductions",
    "reductions.scans",
)

_TABLE: dict[tuple[np.ufunc | None, str], Handler] = {}


def implements_ufunc(ufunc: np.ufunc | None, method: str = "__call__") -> Callable[[H], H]:
    """Register what runs in place of a ufunc's method where an argument is a ShardedArray.

    Parameters
    ----------
    ufunc : ufunc or None
        None for all that have nothing of their own.
    method : str
        ``"__call__"``, ``"reduce"``, ``"accumulate"``, ``"reduceat"``, ``"outer"`` or ``"at"``.

    Examples
    --------
    >>> @implements_ufunc(np.vecdot)  # doctest: +SKIP
    ... def vecdot(ufunc, inputs, kwargs):
    ...     return NotImplemented  # the arrays are gathered
    """

    def register(handler: H) -> H:
        _TABLE[ufunc, method] = handler
        return handler

    return register


def handler_of(ufunc: np.ufunc, method: str) -> Handler | None:
    """Return what runs in place of a ufunc's method; None where arrays are to be gathered."""
    _load_homes()
    return _TABLE.get((ufunc, method)) or _TABLE.get((None, method))


@functools.cache
def _load_homes() -> None:
    for home in _HOMES:
        importlib.import_module(f"ringlet.sharding.{home}")


def is_cached(ufunc: np.ufunc) -> bool:
    """Return whether caches may hold a ufunc: not one of :func:`numpy.frompyfunc`, which has a single loop.

    Such a ufunc holds a Python function and all that it refers to, and cannot be referred to weakly.

    Examples
    --------
    >>> is_cached(np.add), is_cached(np.frompyfunc(abs, 1, 1))
    (True, False)
    """
    return ufunc.ntypes > 1
