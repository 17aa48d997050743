"""Which workers this process is one of: those of the current strategy, or of the one that the process has made."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

from ringlet import context

__all__ = ["Workers", "current_workers", "remember_workers"]


class Workers(Protocol):
    """What joins the workers of a strategy: calls that all make together, in the same order, outside of replicas.

    It joins at the first of the calls. All of them wait no longer than the strategy's time, and raise on every worker
    if one is lost or made another call.
    """

    @property
    def num_workers(self) -> int:
        """How many processes there are."""
        ...

    @property
    def worker_index(self) -> int:
        """Which of them this is."""
        ...

    @property
    def is_chief(self) -> bool:
        """Whether it is the one that speaks for all."""
        ...

    @property
    def job(self) -> str:
        """What tells their job from others: the same text on all of them."""
        ...

    def barrier(self, name: str) -> None:
        """Wait until all have come here."""

    def sum(self, number: int) -> int:
        """Give the sum over all workers."""
        ...

    def broadcast(self, array: Any, root: int = 0) -> Any:
        """Give every worker the array of one."""
        ...

    def exchange(self, data: bytes) -> list[bytes]:
        """Give every worker what each of them brings."""
        ...


_remembered: list[weakref.ref[Any]] = []


def remember_workers(workers: Workers) -> None:
    """Have :func:`current_workers` find these outside of the scope of their strategy, for as long as that lives.

    Parameters
    ----------
    workers : Workers
        Of a strategy that was just made; those that were made before are found again when it has gone.

    Examples
    --------
    >>> class Two:
    ...     num_workers, worker_index = 2, 1
    >>> two = Two()
    >>> remember_workers(two)
    >>> current_workers() is two
    True
    >>> del two
    >>> current_workers() is None
    True
    """
    _remembered[:] = [each for each in _remembered if each() is not None]
    _remembered.append(weakref.ref(workers))


def current_workers() -> Workers | None:
    """Give what joins the workers of the current strategy, or of the last one that this process has made.

    Returns
    -------
    Workers or None
        None if all strategies are of this process alone.

    Examples
    --------
    >>> current_workers() is None
    True
    """
    mode = context.current()
    found: Workers | None = None if mode is None else getattr(mode.strategy.extended, "_workers", None)
    if found is not None:
        return found
    for each in reversed(_remembered):
        workers: Workers | None = each()
        if workers is not None:
            return workers
    return None
