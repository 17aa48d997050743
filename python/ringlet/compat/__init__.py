"""Compatibility namespaces: ``from ringlet.compat import tf`` replaces ``import tensorflow as tf``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.module_names import list_public, load_on_use

if TYPE_CHECKING:
    from ringlet.compat import tf

__all__ = ["tf"]

__getattr__ = load_on_use(__name__, {"tf": "tf"})
__dir__ = list_public(__name__)
