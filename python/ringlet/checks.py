"""Runtime checks of a program's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.module_names import list_public, load_on_use

if TYPE_CHECKING:
    from ringlet.rank_zero.equality import all_equal

__all__ = ["all_equal"]

__getattr__ = load_on_use(__name__, {"all_equal": ".rank_zero.equality"})
__dir__ = list_public(__name__)
