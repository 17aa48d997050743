"""Statistics of the collectives of this process, from the counters of the flight recorder."""

from __future__ import annotations

from dataclasses import dataclass

from ringlet.observe.recorder import copy_memory, read_process

__all__ = ["OperationStats", "stats"]


@dataclass(frozen=True)
class OperationStats:
    """Sums over all calls of one operation that have ended, of all ranks that this process drives.

    Parameters
    ----------
    count : int
        Number of calls. The calls of two ranks of this process count as two.
    bytes : int
        Size of their inputs.
    seconds : float
        Time spent in them.
    waiting_seconds : float
        The part of that time in which other ranks had not yet made the call.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.observe.OperationStats(count=2, bytes=16, seconds=0.25, waiting_seconds=0.125)
    OperationStats(count=2, bytes=16, seconds=0.25, waiting_seconds=0.125)
    """

    count: int
    bytes: int
    seconds: float
    waiting_seconds: float


def stats() -> dict[str, OperationStats]:
    """Return statistics of the collectives of this process since its start.

    A rank that waits long for others is fast; the rank that waits least is the one that the others wait for.

    Returns
    -------
    dict of str to OperationStats
        By name of the operation, such as ``"all_reduce"``; only operations that were called. Empty if the flight
        recorder is off, for the reason that ``show_config`` prints, and in a child of ``os.fork()``.

    Examples
    --------
    >>> import numpy as np
    >>> import ringlet
    >>> member = ringlet.collectives.Group(1).member(0)
    >>> before = ringlet.observe.stats().get("all_gather")
    >>> _ = member.all_gather(np.ones(3))
    >>> ringlet.observe.stats()["all_gather"].count - (before.count if before else 0)
    1
    """
    from ringlet import _core  # loaded here because the launcher does not use it

    descriptor = _core.recorder()
    if descriptor < 0:
        return {}
    source = "the flight recorder of this process"
    totals = read_process(copy_memory(descriptor, source), source, totals_only=True).totals
    return {name: OperationStats(t.count, t.bytes, t.seconds, t.waiting_seconds) for name, t in totals.items()}
