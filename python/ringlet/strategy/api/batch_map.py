"""``map``: a function applied to batches of rows, on all replicas."""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ringlet import nest
from ringlet.collectives.adapters.array_adapters import common_kind, in_kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.errors.exception_notes import add_note
from ringlet.strategy.api.current_strategy import get_strategy, has_strategy, replica_context
from ringlet.strategy.api.mirrored_strategy import MirroredStrategy
from ringlet.values import leaf_columns

if TYPE_CHECKING:
    from typing_extensions import TypeVarTuple, Unpack

    from ringlet.strategy.api.strategy import Strategy

    Arrays = TypeVarTuple("Arrays")

__all__ = ["map", "map_batches"]

R = TypeVar("R")


def map(  # named like the built-in function
    fn: Callable[[Unpack[Arrays]], R],
    *arrays: Unpack[Arrays],
    batch_size: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> R:
    """Apply a function to batches of rows on all cores; :meth:`Strategy.map` of the current strategy.

    Outside of every scope, a :class:`~ringlet.MirroredStrategy` over all cores runs it; the first call creates that
    strategy.

    Parameters
    ----------
    fn : callable
    *arrays : nested structure of array
    batch_size : int, optional
    progress : callable, optional
        As for :meth:`Strategy.map`.

    Returns
    -------
    nested structure of array

    Examples
    --------
    >>> import numpy as np, ringlet
    >>> ringlet.map(np.sqrt, np.array([1.0, 4.0, 9.0]), batch_size=2)
    array([1., 2., 3.])
    """
    strategy = get_strategy() if has_strategy() else _strategy_of_all_cores()
    return map_batches(strategy, fn, arrays, batch_size, progress)


@functools.cache
def _strategy_of_all_cores() -> Strategy:
    return MirroredStrategy()


def map_batches(
    strategy: Strategy,
    fn: Callable[..., R],
    arrays: Sequence[Any],
    batch_size: int | None,
    progress: Callable[[int, int], object] | None,
) -> R:
    """Implement :meth:`Strategy.map`."""
    leaves, shape = nest.flatten(tuple(arrays))
    rows = _num_rows(leaves)
    size = _checked_size(batch_size, rows, strategy.extended._num_local_replicas)
    begins = range(0, max(rows, 1), size)
    results: list[Any] = [None] * len(begins)
    waiting = list(reversed(range(len(begins))))  # replicas pop batch numbers, which is atomic
    done, lock = 0, threading.Lock()

    def work() -> None:
        nonlocal done
        run = replica_context()._run
        while waiting and not (run is not None and run.is_stopping):
            try:
                number = waiting.pop()
            except IndexError:  # another replica took the last batch
                return
            begin, end = begins[number], min(begins[number] + size, rows)
            try:
                results[number] = fn(*nest.unflatten(shape, [leaf[begin:end] for leaf in leaves]))
            except BaseException as error:
                waiting.clear()
                held = f"rows {begin} to {end - 1}" if end > begin else "no rows"
                add_note(error, f"raised in batch {number} of {len(begins)}, which has {held}")
                raise
            if progress is not None:
                with lock:
                    done += end - begin
                    progress(done, rows)

    strategy.run(work)
    columns, shape = leaf_columns(results, "map", "batch")
    joined: R = nest.unflatten(shape, [_join(column) for column in columns])
    return joined


def _num_rows(leaves: Sequence[Any]) -> int:
    counts = []
    for leaf in leaves:
        if not getattr(leaf, "shape", ()):
            raise TypeError(
                f"map splits arrays along axis 0, got {leaf!r} of type {type(leaf).__name__}, which has no rows: "
                "write np.asarray(values) for a list of values, and functools.partial(fn, value) for a value that "
                "all rows share"
            )
        counts.append(len(leaf))
    if len(set(counts)) != 1:
        raise ValueError(
            f"map takes one or more arrays with equal numbers of rows, got {counts}: pass arrays of the same length"
        )
    return counts[0]


def _checked_size(batch_size: int | None, rows: int, num_replicas: int) -> int:
    if batch_size is None:  # several batches for each replica, because some may take longer
        return max(1, -(-rows // (4 * num_replicas)))
    if isinstance(batch_size, bool) or not hasattr(batch_size, "__index__") or operator.index(batch_size) < 1:
        raise ValueError(f"batch_size must be a number of rows, at least 1, got {batch_size!r}: write batch_size=32")
    return operator.index(batch_size)


def _join(column: Sequence[Any]) -> Any:
    common_kind(column, "batch")
    try:
        return in_kind_of(column[0], np.concatenate([as_ndarray(part) for part in column]), is_own=True)
    except ValueError as error:
        raise ValueError(
            f"the results of {len(column)} batches cannot be joined along axis 0: {error}. Return an array with one "
            "row for each row of the batch, or np.array([result]) for one result per batch"
        ) from error
