"""Habits of programs that run many times over: what only one of them prints, shows, logs or downloads."""

from __future__ import annotations

from ringlet.helpers.equality import all_equal
from ringlet.helpers.log_filter import ChiefLogFilter
from ringlet.helpers.once import once_per_host
from ringlet.helpers.printing import print0
from ringlet.helpers.progress import progress
from ringlet.helpers.standing import is_chief

__all__ = ["ChiefLogFilter", "all_equal", "is_chief", "once_per_host", "print0", "progress"]
