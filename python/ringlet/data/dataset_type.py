"""The name `Dataset` for annotations in modules that ``dataset.py`` imports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["Dataset"]

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset
else:
    Dataset = Any
