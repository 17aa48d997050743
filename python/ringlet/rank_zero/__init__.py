"""Habits of programs that run many times over: what only one of them prints, shows, logs or downloads."""

from __future__ import annotations

from ringlet.rank_zero.equality import all_equal
from ringlet.rank_zero.log_filter import ChiefLogFilter
from ringlet.rank_zero.once import once_per_host
from ringlet.rank_zero.printing import print0
from ringlet.rank_zero.process_role import is_chief
from ringlet.rank_zero.progress import progress

__all__ = ["ChiefLogFilter", "all_equal", "is_chief", "once_per_host", "print0", "progress"]
