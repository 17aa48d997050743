"""Values of which every worker has one of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from ringlet.coordinator.remote_value import RemoteValue

__all__ = ["PerWorkerDistributedIterator", "PerWorkerValues"]


class PerWorkerValues:
    """One value for each worker, of which a scheduled function is handed that of its worker.

    (``tf.distribute.coordinator.PerWorkerValue``.) Usually made by ``iter`` of what
    :meth:`~ringlet.coordinator.ClusterCoordinator.create_per_worker_dataset` gives, or by
    :meth:`~ringlet.coordinator.ClusterCoordinator.create_per_worker_resource`.

    Parameters
    ----------
    values : iterable of RemoteValue
        In the order of the workers.

    Raises
    ------
    AssertionError
        If something else is among them, as in TensorFlow.

    Examples
    --------
    >>> PerWorkerValues([RemoteValue(), RemoteValue()])
    PerWorkerValues:{
      0: <RemoteValue NOT_READY>,
      1: <RemoteValue NOT_READY>
    }
    """

    def __init__(self, values: Iterable[RemoteValue]) -> None:
        self._values = tuple(values)
        for value in self._values:
            if not isinstance(value, RemoteValue):
                raise AssertionError("`PerWorkerValues` should only take `RemoteValue`s.")

    @property
    def _numbers(self) -> tuple[int, ...]:
        """By which number each worker knows the value that it holds."""
        return tuple(value._number for value in self._values)

    def _check(self, num_workers: int) -> None:
        """Refuse to be an argument in another cluster; wait for values that are to be sent."""
        if len(self._values) != num_workers:
            raise ValueError(
                f"a value for each of {len(self._values)} workers, in a cluster of {num_workers}: {self!r}"
            )
        for value in self._values:
            if not value._stays_there:
                value.get()  # here: the thread that sends it cannot wait, nor import

    def __repr__(self) -> str:
        lines = ",\n".join(f"  {index}: {value!r}" for index, value in enumerate(self._values))
        return f"{type(self).__name__}:{{\n{lines}\n}}"

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} belongs to its coordinator: pass it to schedule")


class PerWorkerDistributedIterator(PerWorkerValues):
    """An iterator for each worker; made by ``iter`` of a dataset of all workers."""

    def __iter__(self) -> PerWorkerDistributedIterator:
        return self

    def __next__(self) -> NoReturn:
        self.get_next()

    def get_next(self) -> NoReturn:
        """Refuse: the elements are on the workers.

        Raises
        ------
        NotImplementedError
            Always, as in TensorFlow.
        """
        raise NotImplementedError("Iterating over an `AsyncDistributedIterator` is not supported right now.")
