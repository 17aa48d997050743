"""ChiefLogFilter: logs routine records on the chief only, and warnings on all processes."""

from __future__ import annotations

import logging
from typing import Any

from ringlet import context
from ringlet.rank_zero.process_role import local_replica, process_role


class ChiefLogFilter(logging.Filter):
    """Passes records at or above a level on all processes and replicas, and records below it on the chief only.

    Attach the filter to handlers: a handler filters the records of all loggers, but a logger does not filter the
    records of its child loggers.

    Parameters
    ----------
    level : int
        Records at or above this level pass on all processes; the default is WARNING.
    name : str
        As in `logging.Filter`: only the logger of this name and its children are filtered; other records pass.

    Notes
    -----
    Each record that passes is labelled with its origin. ``%(worker)s`` in a format is the process, such as ``w2``;
    inside ``strategy.run`` with several replicas, the replica follows, as in ``w2/r5``. A record with
    ``extra={"every_worker": True}`` passes at any level.

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
        """Label a record with its origin, and return whether it passes."""
        replica = local_replica()
        try:
            role = process_role()
        except Exception:  # the environment is invalid, but logging must not raise an error
            record.worker = "w?"
            return True
        record.worker = role.name if replica is None else f"{role.name}{_replica_suffix(replica)}"
        if not super().filter(record) or record.levelno >= self.level or getattr(record, "every_worker", False):
            return True
        return role.is_chief and not replica


def _replica_suffix(local: int) -> str:
    """Return the text, such as ``/r5``, that follows the process's name; empty for a single replica."""
    mode: Any = context.current()
    extended = mode.strategy.extended
    return f"/r{extended._first_replica + local}" if extended._num_local_replicas > 1 else ""
