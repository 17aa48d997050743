"""Table of ufunc methods that run tile by tile; ``__array_ufunc__`` dispatches through it."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

Handler = Callable[[np.ufunc, "tuple[Any, ...]", "dict[str, Any]"], Any]
H = TypeVar("H", bound=Handler)

# Modules that register implementations; loaded at the first call.
_HOMES: tuple[str, ...] = (
    "ops.elementwise",
    "ops.ufunc_methods",
    "products.gufuncs",
    "reductions.reductions",
    "reductions.scans",
)

_TABLE: dict[tuple[np.ufunc | None, str], Handler] = {}


def implements_ufunc(ufunc: np.ufunc | None, method: str = "__call__") -> Callable[[H], H]:
    """Register an implementation of a ufunc's method for arguments that include a ShardedArray.

    If `ufunc` is None, register for all ufuncs without an implementation of their own. The arrays are gathered if the
    implementation returns ``NotImplemented``.
    """

    def register(handler: H) -> H:
        _TABLE[ufunc, method] = handler
        return handler

    return register


def handler_of(ufunc: np.ufunc, method: str) -> Handler | None:
    """Return the implementation of a ufunc's method; None if the arrays must be gathered."""
    _load_homes()
    return _TABLE.get((ufunc, method)) or _TABLE.get((None, method))


@functools.cache
def _load_homes() -> None:
    for home in _HOMES:
        importlib.import_module(f"ringlet.sharding.{home}")


def is_cached(ufunc: np.ufunc) -> bool:
    """Return whether caches may hold a ufunc; false for results of :func:`numpy.frompyfunc`, which have one loop.

    Such a ufunc keeps its Python function alive and does not support weak references.
    """
    return ufunc.ntypes > 1
