"""Runtime checks of a program's state."""

from __future__ import annotations

from ringlet.module_names import list_public
from ringlet.rank_zero.equality import all_equal

__all__ = ["all_equal"]

__dir__ = list_public(__name__)
