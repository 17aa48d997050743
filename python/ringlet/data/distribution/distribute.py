"""Entry points of strategies for distributing datasets, with checks of the options."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ringlet.data.dataset import Dataset
from ringlet.data.distribution.distributed_dataset import DistributedDataset
from ringlet.data.distribution.distribution_plan import Uneven
from ringlet.data.input_context import InputContext
from ringlet.data.input_options import InputOptions, InputReplicationMode


def distribute_dataset(
    dataset: Dataset | Iterable[Any],
    num_replicas: int,
    options: InputOptions | None = None,
    *,
    num_workers: int = 1,
    worker_index: int = 0,
    sum_over_workers: Callable[[int], int] | None = None,
    exchange: Callable[[bytes], list[bytes]] | None = None,
    uneven: Uneven = None,
) -> DistributedDataset:
    """Shard a dataset, or an iterable of batches, across workers, and split its global batches among the replicas."""
    if _mode(options) is InputReplicationMode.PER_REPLICA:
        raise NotImplementedError(
            "InputReplicationMode.PER_REPLICA requires a function that creates a dataset for each replica. Call "
            "strategy.distribute_datasets_from_function instead."
        )
    return DistributedDataset(
        dataset,
        num_replicas,
        num_workers=num_workers,
        worker_index=worker_index,
        sum_over_workers=sum_over_workers,
        exchange=exchange,
        buffer_size=_buffer_size(options),
        uneven=uneven,
    )


def distribute_datasets_from_function(
    dataset_fn: Callable[[InputContext], Dataset | Iterable[Any]],
    num_replicas: int,
    options: InputOptions | None = None,
    *,
    num_workers: int = 1,
    worker_index: int = 0,
    sum_over_workers: Callable[[int], int] | None = None,
    exchange: Callable[[bytes], list[bytes]] | None = None,
) -> DistributedDataset:
    """Create a dataset with a function, and distribute its elements to the replicas of a worker.

    The function takes an InputContext and returns a dataset of batches for one replica; consecutive elements go to
    consecutive replicas. With PER_REPLICA, the function is called once for each replica, and each replica reads its own
    dataset.
    """
    mode = _mode(options)
    if options is not None and options.experimental_place_dataset_on_device:
        _check_placed(options)
    if mode is InputReplicationMode.PER_REPLICA:
        if num_workers > 1:
            raise NotImplementedError(
                "InputReplicationMode.PER_REPLICA supports a single worker. Use PER_WORKER, which distributes batches "
                "to the replicas of each worker in turn."
            )
        contexts = (InputContext(num_replicas, replica, num_replicas) for replica in range(num_replicas))
        return DistributedDataset.of_replicas(map(dataset_fn, contexts), buffer_size=_buffer_size(options))
    return DistributedDataset(
        dataset_fn(InputContext(num_workers, worker_index, num_replicas * num_workers)),
        num_replicas,
        rebatch=False,
        num_workers=num_workers,
        worker_index=worker_index,
        sum_over_workers=sum_over_workers,
        exchange=exchange,
        buffer_size=_buffer_size(options),
    )


def _buffer_size(options: InputOptions | None) -> int:
    return 1 if options is None else options.experimental_per_replica_buffer_size


def _mode(options: InputOptions | None) -> InputReplicationMode:
    return InputReplicationMode.PER_WORKER if options is None else options.experimental_replication_mode


def _check_placed(options: InputOptions) -> None:
    if options.experimental_replication_mode is not InputReplicationMode.PER_REPLICA:
        raise ValueError(
            "experimental_place_dataset_on_device requires "
            "experimental_replication_mode=InputReplicationMode.PER_REPLICA"
        )
    if options.experimental_fetch_to_device:
        raise ValueError(
            "experimental_place_dataset_on_device with PER_REPLICA requires experimental_fetch_to_device=False (the "
            "default is True)"
        )
