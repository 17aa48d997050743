"""ChiefLogFilter: what all processes have to say is said once, and what goes wrong is said by everybody."""

from __future__ import annotations

import logging
from typing import Any

from ringlet import context
from ringlet.rank_zero.process_role import local_replica, standing

__all__ = ["ChiefLogFilter"]


class ChiefLogFilter(logging.Filter):
    """Lets records of all processes and replicas pass from a level on, and those below it from the chief alone.

    Attach it to handlers: they are asked for the records of all loggers, and a logger's own filter is not asked for
    those of loggers below it.

    Parameters
    ----------
    level : int
        From which on everybody is heard: WARNING unless given.
    name : str
        As `logging.Filter` takes it: only loggers of that name and below it are filtered; others are let pass.

    Notes
    -----
    Each record that passes knows who made it. ``%(worker)s`` in a format is the process, such as ``w2``; inside of
    ``strategy.run`` with several replicas it is followed by the replica, as in ``w2/r5``. A record with
    ``extra={"every_worker": True}`` passes whatever its level.

    Examples
    --------
    >>> import logging, sys
    >>> handler = logging.StreamHandler(sys.stdout)
    >>> handler.addFilter(ChiefLogFilter())
    >>> handler.setFormatter(logging.Formatter("%(worker)s %(levelname)s: %(message)s"))
    >>> log = logging.getLogger("training")
    >>> log.setLevel("INFO"); log.addHandler(handler); log.propagate = False
    >>> log.info("epoch 3")
    w0 INFO: epoch 3
    >>> import ringlet
    >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> strategy.run(lambda: (log.info("once"), log.warning("twice"))[0])
    w0/r0 INFO: once
    w0/r0 WARNING: twice
    w0/r1 WARNING: twice
    """

    def __init__(self, level: int = logging.WARNING, name: str = "") -> None:
        super().__init__(name)
        self.level = level

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record passes, and write into it who made it."""
        replica = local_replica()
        try:
            place = standing()
        except Exception:  # of an environment that nobody can read: a record is no place to raise that
            record.worker = "w?"
            return True
        record.worker = place.name if replica is None else f"{place.name}{_replica_name(replica)}"
        if not super().filter(record) or record.levelno >= self.level or getattr(record, "every_worker", False):
            return True
        return place.is_chief and not replica


def _replica_name(local: int) -> str:
    """How a replica is called behind its process; one that is alone needs no name."""
    mode: Any = context.current()
    extended = mode.strategy.extended
    return f"/r{extended._first_replica + local}" if extended._num_local_replicas > 1 else ""
