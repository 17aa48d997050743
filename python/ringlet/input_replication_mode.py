"""InputReplicationMode, in a module of its own because strategies do not import datasets before their first use."""

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
