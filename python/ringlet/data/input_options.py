"""How a strategy is to feed its replicas."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["InputOptions", "InputReplicationMode"]


class InputReplicationMode(Enum):
    """For whom a function that makes datasets is called (``tf.distribute.InputReplicationMode``).

    Examples
    --------
    >>> [mode.name for mode in InputReplicationMode]
    ['PER_WORKER', 'PER_REPLICA']
    """

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


@dataclass(frozen=True)
class InputOptions:
    """How a strategy is to feed its replicas (``tf.distribute.InputOptions``).

    Parameters
    ----------
    experimental_fetch_to_device : bool, optional
        Kept for TensorFlow's sake: all devices share host memory, so there is nowhere to fetch to. None is True.
    experimental_replication_mode : InputReplicationMode
        PER_REPLICA calls the function of `distribute_datasets_from_function` once for each replica.
    experimental_place_dataset_on_device : bool, default False
        Kept for TensorFlow's sake, and its rules are: it needs PER_REPLICA, and no fetching.
    experimental_per_replica_buffer_size : int, default 1
        Kept for TensorFlow's sake: elements are made ahead where the dataset says `prefetch`, and nowhere else.

    Examples
    --------
    >>> InputOptions().experimental_fetch_to_device
    True
    """

    experimental_fetch_to_device: bool | None = None
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1

    def __post_init__(self) -> None:
        if self.experimental_fetch_to_device is None:
            object.__setattr__(self, "experimental_fetch_to_device", True)
