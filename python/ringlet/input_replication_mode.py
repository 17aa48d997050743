"""For whom datasets are made: asked by strategies, which do not load datasets before somebody uses them."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputReplicationMode"]


class InputReplicationMode(Enum):
    """For whom a function that makes datasets is called (``tf.distribute.InputReplicationMode``).

    Examples
    --------
    >>> [mode.name for mode in InputReplicationMode]
    ['PER_WORKER', 'PER_REPLICA']
    """

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"
