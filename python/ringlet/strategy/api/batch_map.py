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
from ringlet.collectives.argument_parsing import shortened
from ringlet.collectives.buffers import as_ndarray
from ringlet.errors.exception_notes import add_note
from ringlet.strategy.api.current_strategy import get_strategy, has_strategy, replica_context
from ringlet.strategy.api.mirrored_strategy import MirroredStrategy
from ringlet.strategy.calls.run_options import HELPERS_ONLY
from ringlet.values import leaf_columns

if TYPE_CHECKING:
    from typing_extensions import TypeVarTuple, Unpack

    from ringlet.strategy.api.strategy import Strategy

    Arrays = TypeVarTuple("Arrays")

R = TypeVar("R")


def map(  # shadows the built-in function on purpose
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
        Called with a batch: the same rows of each of `arrays`. It must not call collectives.
    *arrays : nested structure of array
        Split along axis 0; all have the same number of rows. Each is one argument of `fn`.
    batch_size : int, optional
        Rows of each batch; the last one may have fewer. By default there are four batches for each core.
    progress : callable, optional
        Called after each batch with the number of finished rows and the total number of rows.

    Returns
    -------
    nested structure of array
        The results of the batches, joined along axis 0. Errors are those of :meth:`Strategy.map`.

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
    if not callable(fn):
        raise TypeError(f"map takes the function first, got {shortened(fn)}: write map(fn, array)")
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

    strategy.run(work, options=HELPERS_ONLY)
    columns, shape = leaf_columns(results, "map", "batch")
    joined: R = nest.unflatten(shape, [_join(column) for column in columns])
    return joined


def _num_rows(leaves: Sequence[Any]) -> int:
    counts: list[int] = []
    for leaf in leaves:
        if not getattr(leaf, "shape", ()):
            raise TypeError(
                f"map splits arrays along axis 0, got {shortened(leaf)} of type {type(leaf).__name__}, which has no "
                f"rows: write {_with_rows(leaf)}"
            )
        counts.append(leaf.shape[0])  # not len(): sparse matrices have no length
    if len(set(counts)) != 1:
        raise ValueError(
            f"map takes one or more arrays with equal numbers of rows, got {counts}: pass arrays of the same length"
        )
    return counts[0]


def _with_rows(leaf: Any) -> str:
    if hasattr(leaf, "batch"):  # the leaf is a dataset
        return "dataset.map(fn), or for batch in strategy.distribute_dataset(dataset): strategy.run(fn, args=(batch,))"
    values = "list(values)" if hasattr(leaf, "__next__") else "values"
    return f"np.asarray({values}) for a list of values, and functools.partial(fn, value) for one value of all rows"


def _checked_size(batch_size: int | None, rows: int, num_replicas: int) -> int:
    if batch_size is None:  # several batches for each replica, because some may take longer
        return max(1, -(-rows // (4 * num_replicas)))
    if isinstance(batch_size, bool) or not hasattr(batch_size, "__index__") or operator.index(batch_size) < 1:
        raise ValueError(f"batch_size must be a number of rows, at least 1, got {batch_size!r}: write batch_size=32")
    return operator.index(batch_size)


def _join(column: Sequence[Any]) -> Any:
    common_kind(column, "batch")
    if any(part is None for part in column):
        raise ValueError("the function returned None for a batch: return an array with a row for each row of the batch")
    try:
        return in_kind_of(column[0], np.concatenate([as_ndarray(part) for part in column]), is_own=True)
    except ValueError as error:
        raise ValueError(
            f"the results of {len(column)} batches cannot be joined along axis 0: {error}. The function is called with "
            "a batch of rows: return an array with one row for each, such as np.array([fn(row) for row in batch]), or "
            "np.array([result]) for one result per batch"
        ) from error
