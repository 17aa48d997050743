"""Observation of running programs: statistics of collectives, traces, the last operations of each rank, stall reports.

Examples
--------
>>> import ringlet
>>> strategy = ringlet.MirroredStrategy(2)
>>> _ = strategy.run(lambda: ringlet.replica_context().all_reduce("SUM", 1.0))
>>> ringlet.observe.stats()["all_reduce"].count >= 2
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.module_names import list_public, load_on_use
from ringlet.observe.trace_hook import trace

if TYPE_CHECKING:
    from ringlet.observe.operation_stats import stats
    from ringlet.observe.recorder import OperationStats

__all__ = ["OperationStats", "stats", "trace"]

# Loaded on first use, because collectives and strategies import this package but do not need these modules.
__getattr__ = load_on_use(__name__, {"OperationStats": "recorder", "stats": "operation_stats"})

__dir__ = list_public(__name__)
