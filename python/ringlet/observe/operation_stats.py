"""Statistics of the collectives of this process, from the counters of the flight recorder."""

from __future__ import annotations

from ringlet.observe.recorder import OperationStats, copy_memory, read_process


def stats() -> dict[str, OperationStats]:
    """Return statistics of the collectives of this process since its start.

    A rank with a long waiting time arrives early; the rank with the shortest waiting time delays the others.

    Returns
    -------
    dict of str to OperationStats
        The statistics of each operation that was called, by its name, such as ``"all_reduce"``. Empty in a child of
        ``os.fork()``, and if the flight recorder is off; ``show_config`` prints the reason.

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
    return read_process(copy_memory(descriptor, source), source, totals_only=True).totals
