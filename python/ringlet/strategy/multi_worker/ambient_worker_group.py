"""The worker group of the current strategy, else of the newest strategy with workers that still exists."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ringlet import context

if TYPE_CHECKING:
    from ringlet.strategy.multi_worker.worker_group import WorkerGroup

_registered: list[weakref.ref[Any]] = []


def register_workers(workers: WorkerGroup) -> None:
    """Make :func:`current_workers` return a group outside of its strategy's scope, while the group is alive."""
    _registered[:] = [each for each in _registered if each() is not None]
    _registered.append(weakref.ref(workers))


def current_workers() -> WorkerGroup | None:
    """Return the worker group of the current strategy, else the newest group that still exists; None without one."""
    mode = context.current()
    found: WorkerGroup | None = None if mode is None else getattr(mode.strategy.extended, "_workers", None)
    if found is not None:
        return found
    for each in reversed(_registered):
        workers: WorkerGroup | None = each()
        if workers is not None:
            return workers
    return None
