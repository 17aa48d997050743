"""InputOptions: how a strategy feeds its replicas."""

from __future__ import annotations

from typing import NamedTuple

from ringlet.input_replication_mode import InputReplicationMode

__all__ = ["InputOptions", "InputReplicationMode"]


class _Fields(NamedTuple):
    """The fields of TensorFlow's class."""

    experimental_fetch_to_device: bool = True
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1


class InputOptions(_Fields):
    """How a strategy feeds its replicas (``tf.distribute.InputOptions``), a named tuple.

    Parameters
    ----------
    experimental_fetch_to_device : bool, optional
        Kept for compatibility with TensorFlow: all devices share host memory. None is True.
    experimental_replication_mode : InputReplicationMode
        PER_REPLICA calls the function of `distribute_datasets_from_function` once for each replica.
    experimental_place_dataset_on_device : bool, default False
        Kept for compatibility with TensorFlow, with its rules: it requires PER_REPLICA and no fetching.
    experimental_per_replica_buffer_size : int, default 1
        How many elements a thread prefetches for each replica, if making an element takes longer than passing it
        between threads: a dataset with functions, or with large copies. 0 makes each on request.

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
        """Create options."""
        return super().__new__(
            cls,
            True if experimental_fetch_to_device is None else experimental_fetch_to_device,
            experimental_replication_mode,
            experimental_place_dataset_on_device,
            experimental_per_replica_buffer_size,
        )
