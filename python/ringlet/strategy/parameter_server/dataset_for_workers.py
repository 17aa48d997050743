"""DatasetForWorkers: what a strategy of parameter servers makes of a dataset before a worker has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ringlet.data import DistributedDataset

__all__ = ["DatasetForWorkers"]


class DatasetForWorkers(DistributedDataset):
    """A distributed dataset that each worker builds for itself.

    ``ClusterCoordinator.create_per_worker_dataset`` takes it. Every worker has all elements: nothing is cut or sharded.

    Parameters
    ----------
    make : callable
        Gives the dataset, in the process of a worker; without arguments.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> dataset = DatasetForWorkers(lambda: Dataset.range(3))
    >>> [int(x) for x in dataset.build()]
    [0, 1, 2]
    >>> iter(dataset)
    Traceback (most recent call last):
        ...
    ValueError: To use this dataset, you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset...
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def build(self) -> Any:
        """Give the dataset of this process."""
        return self._make()

    def then(self, function: Callable[[Any], Any]) -> DatasetForWorkers:
        """Give a dataset whose workers have what a function makes of theirs."""
        return DatasetForWorkers(_Then(self._make, function))

    def __iter__(self) -> NoReturn:
        raise _not_here()

    @property
    def decision(self) -> NoReturn:
        """Refused: it is made where the dataset is built."""
        raise _not_here()

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> NoReturn:
        """Refused: the elements are where the workers are."""
        raise _not_here()

    @property
    def cardinality(self) -> NoReturn:
        """Refused: it is known where the dataset is built."""
        raise ValueError("Cannot get the cardinality of a dataset that is not built: workers build it")

    @property
    def element_spec(self) -> NoReturn:
        """Refused: it is known where the dataset is built."""
        raise ValueError("Cannot get the element_spec of a dataset that is not built: workers build it")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class _Then:
    """One function after another, which can be pickled if both can."""

    def __init__(self, make: Callable[[], Any], function: Callable[[Any], Any]) -> None:
        self._make, self._function = make, function

    def __call__(self) -> Any:
        return self._function(self._make())


def _not_here() -> ValueError:
    return ValueError(
        "To use this dataset, you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset. Its "
        "elements are where the workers are"
    )
