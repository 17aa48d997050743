"""``map``: a function applied to batches of rows, on all replicas."""

from __future__ import annotations

import functools
import inspect
import logging
import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from ringlet import context, nest
from ringlet.collectives.adapters.array_adapters import common_kind, in_kind_of
from ringlet.collectives.argument_parsing import shortened
from ringlet.collectives.buffers import as_ndarray
from ringlet.errors import InvalidArgumentError
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

_log = logging.getLogger(__name__)
_has_hinted = False
# The remedy for rows whose results have different shapes.
_OBJECTS = "for results of different shapes, write np.fromiter(map(fn, batch), object), one object for each row"
_LIST = (
    "the function returned a list, but map joins arrays: return np.array(items) for one item per row, or a tuple for a "
    f"structure of arrays; {_OBJECTS}"
)


def map(  # shadows the built-in function on purpose
    fn: Callable[[Unpack[Arrays]], R],
    *arrays: Unpack[Arrays],
    batch_size: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    **unknown: NoReturn,
) -> R:
    """Apply a function to batches of rows in parallel, with :meth:`Strategy.map` of the current strategy.

    Outside of every scope, a :class:`~ringlet.MirroredStrategy` over all cores runs it; the first call creates that
    strategy.

    Parameters
    ----------
    fn : callable
        Called with a batch of rows, not with single rows: the same rows of each of `arrays`. The result of a row must
        not depend on other rows. `fn` must not call collectives, nor return a list. For random numbers, pass a seed in
        each row: draws from a generator that replicas share differ from run to run.
    *arrays : nested structure of array
        Split along axis 0; all have the same number of rows. Each is one argument of `fn`; lists are not accepted.
    batch_size : int, optional
        Rows of each batch; the last batch may have fewer. By default there are up to four batches for each replica.
    progress : callable, optional
        Called after each batch with the number of finished rows and the total number of rows.
    **unknown
        Other keywords raise TypeError.

    Returns
    -------
    nested structure of array
        The results of the batches, joined along axis 0. The call raises the same errors as :meth:`Strategy.map`.

    Examples
    --------
    >>> import numpy as np, ringlet
    >>> ringlet.map(np.sqrt, np.array([1.0, 4.0, 9.0]), batch_size=2)
    array([1., 2., 3.])
    """
    strategy = get_strategy() if has_strategy() else _strategy_of_all_cores()
    return map_batches(strategy, fn, arrays, batch_size, progress, unknown=unknown)


@functools.cache
def _strategy_of_all_cores() -> Strategy:
    return MirroredStrategy()


def map_batches(
    strategy: Strategy,
    fn: Callable[..., R],
    arrays: Sequence[Any],
    batch_size: int | None,
    progress: Callable[[int, int], object] | None,
    *,
    unknown: Mapping[str, Any],
) -> R:
    """Implement :meth:`Strategy.map`."""
    _check_call(fn, progress, unknown)
    leaves, shape = nest.flatten(tuple(arrays))
    rows = _num_rows(arrays, leaves)
    size = _checked_size(batch_size, rows, strategy.extended._num_local_replicas)
    begins = range(0, max(rows, 1), size)
    results: list[Any] = [None] * len(begins)
    waiting = list(reversed(range(len(begins))))  # replicas pop batch numbers, which is atomic
    done, lock = 0, threading.Lock()

    def work() -> None:
        nonlocal done
        run = replica_context()._run
        if run is not None:  # patches this run only, so that other runs need no check
            vars(run).update(begin_collective=_refuse_collective, merge_call=_refuse_collective)
        while waiting and not (run is not None and run.is_stopping):
            try:
                number = waiting.pop()
            except IndexError:  # another replica took the last batch
                return
            begin, end = begins[number], min(begins[number] + size, rows)
            try:
                results[number] = fn(*nest.unflatten(shape, [leaf[begin:end] for leaf in leaves]))
                if type(results[number]) is list:
                    raise InvalidArgumentError(_LIST)
            except BaseException as error:
                waiting.clear()
                held = f"rows {begin} to {end - 1}" if end > begin + 1 else f"row {begin}" if end > begin else "no rows"
                if isinstance(error, ValueError) and "inhomogeneous shape" in str(error):
                    add_note(error, _OBJECTS)
                if type(arrays[0]) is tuple and isinstance(error, TypeError) and "required positional" in str(error):
                    add_note(error, "map passes a tuple as one argument: write map(fn, *arrays)")
                add_note(error, f"raised in batch {number} of {len(begins)}: one call of the function with {held}")
                raise
            if progress is not None:
                with lock:
                    done += end - begin
                    progress(done, rows)

    strategy.run(work, options=HELPERS_ONLY)
    columns, shape = leaf_columns(results, "map", "batch")
    joined: R = nest.unflatten(shape, [_join(column, rows) for column in columns])
    return joined


def _check_call(fn: Any, progress: Any, unknown: Mapping[str, Any]) -> None:
    if not callable(fn):
        raise TypeError(f"map takes a function as its first argument, got {shortened(fn)}: write map(fn, array)")
    for name in unknown:
        raise TypeError(
            f"map got an unexpected keyword argument {name!r}: write functools.partial(fn, {name}=...) for an argument "
            "of the function, batch_size=... for the number of rows in a batch, and ringlet.MirroredStrategy(4).map or "
            "the environment variable RINGLET_NUM_DEVICES=4 for the number of replicas"
        )
    if progress is not None and not _takes_two_numbers(progress):
        raise TypeError(
            f"progress must be a function of the number of finished rows and the total number of rows, got "
            f"{shortened(progress)}: write progress=lambda done, total: print(done, total). Functions that wrap an "
            "iterable, such as ringlet.progress, are for loops"
        )
    mode = context.current()
    if mode is not None and not mode.is_cross_replica:
        raise RuntimeError(
            "map requires cross-replica context, but was called by a replica, in the function of another map or of "
            "strategy.run, which already uses all replicas. Call the function directly, as in fn(batch)"
        )


def _takes_two_numbers(progress: Any) -> bool:
    try:
        first, *_ = inspect.signature(progress).bind(0, 1).arguments
    except TypeError:
        return False
    except ValueError:  # a built-in function without a signature
        return True
    return first not in ("iterable", "sequence")  # parameter names of ringlet.progress, tqdm and rich.progress.track


def _refuse_collective(*args: Any, **_: Any) -> NoReturn:
    # merge_call passes its name as the last argument; all_reduce and all_gather pass no arguments.
    name = args[-1] if args else "all_reduce or all_gather"
    raise RuntimeError(
        f"the function of map called {name}: replicas run different numbers of batches, so unrelated batches would be "
        "combined. Combine the results after map has returned, or use strategy.run"
    )


def _num_rows(arrays: Sequence[Any], leaves: Sequence[Any]) -> int:
    for number, array in enumerate(arrays):
        if isinstance(array, list) and any(getattr(item, "shape", ()) for item in array):
            raise InvalidArgumentError(
                f"arrays[{number}] is a list of {len(array)} arrays, each of which would be split along its own axis "
                "0: pass np.stack(images) for one row per image, np.fromiter(images, object) if their shapes differ, "
                "or a tuple or dict for a structure of arrays"
            )
    counts: list[int] = []
    for leaf in leaves:
        if not getattr(leaf, "shape", ()):
            raise TypeError(
                f"map splits arrays along axis 0, got {shortened(leaf)} of type {type(leaf).__name__}, which has no "
                f"rows: write {_with_rows(leaf, any(leaf is array for array in arrays))}"
            )
        counts.append(leaf.shape[0])  # not len(): sparse matrices have no length
    if len(set(counts)) != 1:
        raise ValueError(
            f"map takes one or more arrays with equal numbers of rows, got {counts}: "
            + ("pass arrays of the same length" if counts else "write map(fn, array)")
        )
    return counts[0]


def _with_rows(leaf: Any, is_argument: bool) -> str:
    if hasattr(leaf, "batch"):  # the leaf is a dataset
        return "dataset.map(fn), or for batch in strategy.distribute_dataset(dataset): strategy.run(fn, args=(batch,))"
    values = "list(values)" if hasattr(leaf, "__next__") else "values"
    size = f", and batch_size={leaf} for the number of rows in a batch" if is_argument and isinstance(leaf, int) else ""
    return (
        f"np.asarray({values}) for a list of values, functools.partial(fn, value) for one value shared by all "
        f"rows{size}"
    )


def _checked_size(batch_size: int | None, rows: int, num_replicas: int) -> int:
    if batch_size is None:  # several batches for each replica by default, because some may take longer
        return max(1, -(-rows // (4 * num_replicas)))
    if isinstance(batch_size, bool) or not hasattr(batch_size, "__index__") or operator.index(batch_size) < 1:
        raise ValueError(f"batch_size must be a number of rows, at least 1, got {batch_size!r}: write batch_size=32")
    return operator.index(batch_size)


def _join(column: Sequence[Any], rows: int) -> Any:
    common_kind(column, "batch")
    if any(part is None for part in column):
        raise ValueError("the function returned None for a batch: return an array with a row for each row of the batch")
    parts = [as_ndarray(part) for part in column]
    try:
        joined = np.concatenate(parts)
    except ValueError as error:
        remedy = "such as np.array([fn(row) for row in batch]), or np.array([result]) for one result per batch"
        if all(part.shape for part in parts):
            remedy = f"all of one shape; {_OBJECTS}"
        raise ValueError(
            f"the results of {len(column)} batches cannot be joined along axis 0: {error}. The function is called with "
            f"a batch of rows: return an array with one row for each of them, {remedy}"
        ) from None
    if len(joined) not in (rows, len(column)):
        _hint(rows, len(joined))
    return in_kind_of(column[0], joined, is_own=True)


def _hint(rows: int, num_results: int) -> None:
    """Warn, once per process, about a result whose size suggests that the function expects single rows."""
    global _has_hinted
    if not _has_hinted:
        _has_hinted = True
        _log.warning(
            "map got %d rows and returned %d. Its function is called with batches of rows, not with single rows: "
            "compute along axes other than 0, or pass lambda batch: np.array([fn(row) for row in batch]). "
            "If the function selects or adds rows on purpose, ignore this warning",
            rows,
            num_results,
        )
