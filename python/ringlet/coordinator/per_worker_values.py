"""Per-worker values: one value on each worker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from ringlet.coordinator.remote_value import RemoteValue


class PerWorkerValues:
    """One value for each worker; a scheduled function receives the value of its worker.

    Corresponds to ``tf.distribute.coordinator.PerWorkerValue``. Usually created by ``iter`` of the result of
    :meth:`~ringlet.coordinator.ClusterCoordinator.create_per_worker_dataset`, or by
    :meth:`~ringlet.coordinator.ClusterCoordinator.create_per_worker_resource`.

    Parameters
    ----------
    values : iterable of RemoteValue
        The values, in worker order.

    Raises
    ------
    AssertionError
        If a value is not a `RemoteValue`, as in TensorFlow.

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
        """The number by which each worker identifies its value."""
        return tuple(value._number for value in self._values)

    def _check(self, num_workers: int) -> None:
        """Raise an error if the cluster has a different number of workers.

        Also wait for values that do not stay on the workers, because the dispatcher sends them.
        """
        if len(self._values) != num_workers:
            raise ValueError(
                f"PerWorkerValues of {len(self._values)} workers were passed to a cluster of {num_workers}: create "
                f"them with this cluster's coordinator: {self!r}"
            )
        for value in self._values:
            if not value._stays_there:
                value.get()  # waits in this thread, because the dispatcher's thread must not block or import

    def __repr__(self) -> str:
        lines = ",\n".join(f"  {index}: {value!r}" for index, value in enumerate(self._values))
        return f"{type(self).__name__}:{{\n{lines}\n}}"

    def __reduce__(self) -> Any:
        raise TypeError(
            f"cannot pickle a {type(self).__name__}, which is valid in its coordinator only: pass it as an argument to "
            "schedule()"
        )


class PerWorkerDistributedIterator(PerWorkerValues):
    """An iterator for each worker; created by ``iter`` of a `PerWorkerDataset`."""

    def __iter__(self) -> PerWorkerDistributedIterator:
        return self

    def __next__(self) -> NoReturn:
        self.get_next()

    def get_next(self) -> NoReturn:
        """Raise an error: the elements are on the workers.

        Raises
        ------
        NotImplementedError
            Always, as in TensorFlow.
        """
        raise NotImplementedError(
            "Iterating over an `AsyncDistributedIterator` is not supported right now. "
            "The elements are on the workers: call next(iterator) in the function that you pass to schedule, as in "
            "schedule(fn, args=(iterator,))"
        )
