"""A dataset of which every worker has its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ringlet.coordinator.current_worker import as_worker
from ringlet.coordinator.per_worker_values import PerWorkerDistributedIterator, PerWorkerValues
from ringlet.coordinator.worker_resource import Resource
from ringlet.data import Dataset, DistributedDataset
from ringlet.ipc.call_codec import Unsendable
from ringlet.strategy.parameter_server.dataset_for_workers import DatasetForWorkers
from ringlet.strategy.parameter_server.parameter_server_strategy import refusing_variables

if TYPE_CHECKING:
    from ringlet.coordinator.cluster_coordinator import ClusterCoordinator

__all__ = ["PerWorkerDataset"]


class PerWorkerDataset:
    """A dataset that every worker has, whole; made by ``ClusterCoordinator.create_per_worker_dataset``.

    Parameters
    ----------
    coordinator : ClusterCoordinator
    dataset_fn : callable or Dataset or DistributedDataset

    Attributes
    ----------
    element_spec : nested structure or None
        What every element follows; None where only the elements tell.
    """

    def __init__(self, coordinator: ClusterCoordinator, dataset_fn: Any) -> None:
        if not callable(dataset_fn) and not isinstance(dataset_fn, (Dataset, DistributedDataset)):
            raise _unexpected(dataset_fn)
        self._coordinator = coordinator
        self._dataset_fn = dataset_fn
        dataset = self._built_here()
        if not isinstance(dataset, Iterable):
            raise _unexpected(dataset)
        self.element_spec = getattr(dataset, "element_spec", None)

    def build(self) -> PerWorkerValues:
        """Give the datasets themselves, one for each worker, to pass to `schedule`.

        Returns
        -------
        PerWorkerValues
        """
        return PerWorkerValues(self._resources(_build))

    def __iter__(self) -> PerWorkerDistributedIterator:
        return PerWorkerDistributedIterator(self._resources(_iterate))

    def __reduce__(self) -> Any:
        raise Unsendable("cannot send a dataset of all workers: pass iter(dataset), or dataset.build()")

    def _resources(self, make: Callable[[Any], Any]) -> list[Resource]:
        return self._coordinator._create_resources(make, (self._dataset_fn,), name="create_per_worker_dataset")

    def _built_here(self) -> Any:
        """Make the dataset once in the coordinator, for its mistakes and its spec."""
        message = "Creating variables in `dataset_fn` is not allowed."
        with self._coordinator.strategy.scope(), refusing_variables(message), as_worker(0):
            return _build(self._dataset_fn)


def _unexpected(dataset: Any) -> ValueError:
    return ValueError(
        "Unexpected dataset type! Give a ringlet.data.Dataset, what a strategy has made of one, or a function that "
        f"makes one or another iterable of arrays, not {dataset!r} of type {type(dataset).__name__}"
    )


def _build(dataset_fn: Any) -> Any:
    """Make the dataset of the worker that calls."""
    dataset = dataset_fn() if callable(dataset_fn) else dataset_fn
    return dataset.build() if isinstance(dataset, DatasetForWorkers) else dataset


def _iterate(dataset_fn: Callable[[], Any] | Any) -> Any:
    return iter(_build(dataset_fn))
