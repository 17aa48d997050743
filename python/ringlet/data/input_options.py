"""InputOptions: options for the input of replicas."""

from __future__ import annotations

from typing import NamedTuple

from ringlet.input_replication_mode import InputReplicationMode

__all__ = ["InputOptions", "InputReplicationMode"]


class _Fields(NamedTuple):
    experimental_fetch_to_device: bool = True
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1


class InputOptions(_Fields):
    """Options for the input of replicas (``tf.distribute.InputOptions``), a named tuple.

    Parameters
    ----------
    experimental_fetch_to_device : bool, optional
        Kept for compatibility with TensorFlow; unused: all devices share host memory. None means True.
    experimental_replication_mode : InputReplicationMode
        PER_REPLICA calls the function of `distribute_datasets_from_function` once for each replica.
    experimental_place_dataset_on_device : bool, default False
        Kept for compatibility with TensorFlow; as in TensorFlow, True requires PER_REPLICA and
        ``experimental_fetch_to_device=False``.
    experimental_per_replica_buffer_size : int, default 1
        Number of elements that a thread prefetches for each replica, if computing an element takes longer than passing
        it between threads, as with functions or large copies. With 0, elements are computed on request.

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
        return super().__new__(
            cls,
            True if experimental_fetch_to_device is None else experimental_fetch_to_device,
            experimental_replication_mode,
            experimental_place_dataset_on_device,
            experimental_per_replica_buffer_size,
        )
