"""DatasetForWorkers: a dataset of a ParameterServerStrategy before workers build it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ringlet.data import DistributedDataset


class DatasetForWorkers(DistributedDataset):
    """A distributed dataset that each worker builds for itself by calling `make`, without sharding.

    Pass the dataset to ``ClusterCoordinator.create_per_worker_dataset``.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def build(self) -> Any:
        """Return the dataset of this process."""
        return self._make()

    def then(self, function: Callable[[Any], Any]) -> DatasetForWorkers:
        """Return a dataset to which each worker applies a function after building it."""
        return DatasetForWorkers(_Then(self._make, function))

    def __iter__(self) -> NoReturn:
        raise _not_here()

    @property
    def decision(self) -> NoReturn:
        """Not available: the plan is made when a worker builds the dataset."""
        raise _not_here()

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> NoReturn:
        """Not available: the elements are on the workers."""
        raise _not_here()

    @property
    def cardinality(self) -> NoReturn:
        """Not available before a worker builds the dataset."""
        raise ValueError(
            "Cannot get the cardinality of a dataset that is not built: each worker builds its own dataset"
        )

    @property
    def element_spec(self) -> NoReturn:
        """Not available before a worker builds the dataset."""
        raise ValueError(
            "Cannot get the element_spec of a dataset that is not built: each worker builds its own dataset"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class _Then:
    """The composition of two functions, which can be pickled if both can."""

    def __init__(self, make: Callable[[], Any], function: Callable[[Any], Any]) -> None:
        self._make, self._function = make, function

    def __call__(self) -> Any:
        return self._function(self._make())


def _not_here() -> ValueError:
    return ValueError(
        "To use this dataset, you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset. Its "
        "elements are on the workers"
    )
