"""InputReplicationMode, in a module of its own because strategies import datasets only on first use."""

from __future__ import annotations

from enum import Enum

__all__ = ["InputReplicationMode"]


class InputReplicationMode(Enum):
    """Whether a dataset function is called per worker or per replica (``tf.distribute.InputReplicationMode``).

    Examples
    --------
    >>> [mode.name for mode in InputReplicationMode]
    ['PER_WORKER', 'PER_REPLICA']
    """

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"
