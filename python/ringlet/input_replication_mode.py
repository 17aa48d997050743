"""InputReplicationMode, in a separate module because strategies import datasets only at their first use."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputReplicationMode"]


class InputReplicationMode(Enum):
    """Unit for which a function that creates datasets is called (``tf.distribute.InputReplicationMode``).

    Examples
    --------
    >>> [mode.name for mode in InputReplicationMode]
    ['PER_WORKER', 'PER_REPLICA']
    """

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"
