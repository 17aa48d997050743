"""The worker group of the current strategy or, without one, of the last strategy created in this process."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

from ringlet import context

__all__ = ["Workers", "current_workers", "register_workers"]


class Workers(Protocol):
    """Base class of worker groups: calls that all workers make together, in the same order, outside of replicas.

    The first call includes the rendezvous. Every call waits at most the strategy's time-out, and raises an error on all
    workers if one is lost or has made another call.
    """

    @property
    def num_workers(self) -> int:
        """The number of workers."""
        ...

    @property
    def worker_index(self) -> int:
        """The index of this process."""
        ...

    @property
    def is_chief(self) -> bool:
        """True on the chief."""
        ...

    @property
    def job(self) -> str:
        """A text that is equal on all workers of a job and differs between jobs."""
        ...

    def barrier(self, name: str) -> None:
        """Wait until all workers have called this method."""

    def sum(self, number: int) -> int:
        """Return the sum over all workers."""
        ...

    def broadcast(self, array: Any, root: int = 0) -> Any:
        """Return the array of the root on all workers."""
        ...

    def exchange(self, data: bytes) -> list[bytes]:
        """Return the data of all workers, in their order."""
        ...


_registered: list[weakref.ref[Any]] = []


def register_workers(workers: Workers) -> None:
    """Make :func:`current_workers` return a group outside of its strategy's scope, while the group is alive."""
    _registered[:] = [each for each in _registered if each() is not None]
    _registered.append(weakref.ref(workers))


def current_workers() -> Workers | None:
    """Return the worker group of the current strategy, or of the last one created; None in a single process."""
    mode = context.current()
    found: Workers | None = None if mode is None else getattr(mode.strategy.extended, "_workers", None)
    if found is not None:
        return found
    for each in reversed(_registered):
        workers: Workers | None = each()
        if workers is not None:
            return workers
    return None
