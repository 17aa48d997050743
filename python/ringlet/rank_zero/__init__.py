"""Helpers for programs that run as several processes: printing, progress, logging and downloads by one process."""

from __future__ import annotations

from ringlet.rank_zero.equality import all_equal
from ringlet.rank_zero.log_filter import ChiefLogFilter
from ringlet.rank_zero.once import once_per_host
from ringlet.rank_zero.printing import print0
from ringlet.rank_zero.process_role import is_chief, local_rank, rank, size
from ringlet.rank_zero.progress import progress

__all__ = [
    "ChiefLogFilter",
    "all_equal",
    "is_chief",
    "local_rank",
    "once_per_host",
    "print0",
    "progress",
    "rank",
    "size",
]
