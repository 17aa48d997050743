"""Compatibility namespaces: ``from ringlet.compat import tf`` instead of ``import tensorflow as tf``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringlet.compat import tf

__all__ = ["tf"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: it has {', '.join(__all__)}")
    return importlib.import_module(f"{__name__}.{name}")
