"""Current worker: the index of the worker that runs the calling function."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_current: ContextVar[int | None] = ContextVar("ringlet_worker", default=None)


def experimental_get_current_worker_index() -> int:
    """Return the index of the worker that runs the calling function.

    Corresponds to ``tf.distribute.coordinator.experimental_get_current_worker_index``.

    Returns
    -------
    int
        The index, from 0; also 0 when the coordinator itself calls a dataset function.

    Raises
    ------
    RuntimeError
        Outside of functions that workers run and of dataset functions, and in threads that they start, except for
        threads of a dataset.

    Examples
    --------
    >>> with as_worker(3):
    ...     experimental_get_current_worker_index()
    3
    """
    index = _current.get()
    if index is None:
        raise RuntimeError(
            "Cannot retrieve the worker index. `get_worker_idx_and_num_workers` should be called from within a "
            "tf.function being executed on a worker. This method should only be called from either a dataset_fn that "
            "is passed into `ClusterCoordinator.create_per_worker_dataset`, or a tf.function that is passed into "
            "`ClusterCoordinator.schedule`."
        )
    return index


@contextlib.contextmanager
def as_worker(index: int) -> Iterator[None]:
    """Return a context manager that sets the worker index."""
    token = _current.set(index)
    try:
        yield
    finally:
        _current.reset(token)
