"""How a strategy is to feed its replicas."""

from __future__ import annotations

from typing import NamedTuple

from ringlet.input_replication_mode import InputReplicationMode

__all__ = ["InputOptions", "InputReplicationMode"]


class _Fields(NamedTuple):
    """The fields that TensorFlow has."""

    experimental_fetch_to_device: bool = True
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1


class InputOptions(_Fields):
    """How a strategy is to feed its replicas (``tf.distribute.InputOptions``), a named tuple.

    Parameters
    ----------
    experimental_fetch_to_device : bool, optional
        Kept for TensorFlow's sake: all devices share host memory, so there is nowhere to fetch to. None is True.
    experimental_replication_mode : InputReplicationMode
        PER_REPLICA calls the function of `distribute_datasets_from_function` once for each replica.
    experimental_place_dataset_on_device : bool, default False
        Kept for TensorFlow's sake, and its rules are: it needs PER_REPLICA, and no fetching.
    experimental_per_replica_buffer_size : int, default 1
        How many elements are made ahead for each replica, in a thread, where making them takes longer than handing them
        over: a dataset with functions, or with large copies. 0 makes each when it is asked for.

    Examples
    --------
    >>> InputOptions().experimental_fetch_to_device
    True
    """

    __slots__ = ()

    def __new__(
        cls,
        experimental_fetch_to_device: bool | None = None,
        experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER,
        experimental_place_dataset_on_device: bool = False,
        experimental_per_replica_buffer_size: int = 1,
    ) -> InputOptions:
        """Make options."""
        return super().__new__(
            cls,
            True if experimental_fetch_to_device is None else experimental_fetch_to_device,
            experimental_replication_mode,
            experimental_place_dataset_on_device,
            experimental_per_replica_buffer_size,
        )
