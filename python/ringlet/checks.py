"""Checks that a program makes of itself while it runs."""

from __future__ import annotations

from ringlet.rank_zero.equality import all_equal

__all__ = ["all_equal"]
