"""Per-worker dataset: a dataset that is created on each worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ringlet.coordinator.current_worker import as_worker
from ringlet.coordinator.per_worker_values import PerWorkerDistributedIterator, PerWorkerValues
from ringlet.coordinator.worker_resource import Resource
from ringlet.data import Dataset, DistributedDataset
from ringlet.ipc.pickle_codec import Unsendable
from ringlet.strategy.api.strategy import Strategy
from ringlet.strategy.parameter_server.dataset_for_workers import DatasetForWorkers
from ringlet.strategy.parameter_server.parameter_server_strategy import refusing_variables
from ringlet.values.opaque_value import OpaqueValue


class PerWorkerDataset:
    """A dataset on each worker; created by ``ClusterCoordinator.create_per_worker_dataset``.

    Parameters
    ----------
    strategy : ParameterServerStrategy
    create_resources : callable
        Creates the result of a function on each worker.
    dataset_fn : callable or Dataset or DistributedDataset

    Attributes
    ----------
    element_spec : nested structure or None
        Spec of the elements; None if it is not known before iterating.
    """

    def __init__(self, strategy: Strategy, create_resources: Callable[..., list[Resource]], dataset_fn: Any) -> None:
        if not callable(dataset_fn) and not isinstance(dataset_fn, (Dataset, DistributedDataset)):
            raise _unexpected(dataset_fn)
        self._strategy = strategy
        self._create_resources = create_resources
        self._dataset_fn = dataset_fn
        dataset = self._built_here()
        if not isinstance(dataset, Iterable) or isinstance(dataset, OpaqueValue):
            raise _unexpected(dataset)
        self.element_spec = getattr(dataset, "element_spec", None)

    def __repr__(self) -> str:
        return f"<PerWorkerDataset of {self._strategy!r}; pass iter(dataset) to functions>"

    def build(self) -> PerWorkerValues:
        """Return the datasets, one for each worker, to pass to `schedule`.

        Returns
        -------
        PerWorkerValues
        """
        return PerWorkerValues(self._resources(_build))

    def __iter__(self) -> PerWorkerDistributedIterator:
        return PerWorkerDistributedIterator(self._resources(_iterate))

    def __reduce__(self) -> Any:
        raise Unsendable("cannot send a per-worker dataset to a worker: pass iter(dataset), or dataset.build()")

    def _resources(self, make: Callable[[Any], Any]) -> list[Resource]:
        return self._create_resources(make, (self._dataset_fn,), name="create_per_worker_dataset")

    def _built_here(self) -> Any:
        """Create the dataset once in the coordinator, to raise its errors early and to get its spec."""
        message = "Creating variables in `dataset_fn` is not allowed."
        with self._strategy.scope(), refusing_variables(message), as_worker(0):
            return _build(self._dataset_fn)


def _unexpected(dataset: Any) -> ValueError:
    return ValueError(
        "Unexpected dataset type! Pass a ringlet.data.Dataset, a distributed dataset, or a function that returns one "
        f"or another iterable of arrays, got {dataset!r} of type {type(dataset).__name__}"
    )


def _build(dataset_fn: Any) -> Any:
    dataset = dataset_fn() if callable(dataset_fn) else dataset_fn
    return dataset.build() if isinstance(dataset, DatasetForWorkers) else dataset


def _iterate(dataset_fn: Callable[[], Any] | Any) -> Any:
    return iter(_build(dataset_fn))
