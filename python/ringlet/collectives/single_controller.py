"""All-reduces by one thread that has the arrays of all ranks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.collectives.adapters.array_adapters import common_kind, in_kind_of, kind_of
from ringlet.collectives.argument_parsing import as_sequence, refuse_selection, whole_number
from ringlet.collectives.buffers import Array, Output, as_buffers, as_ndarray, is_view_of
from ringlet.collectives.collective_dtypes import as_result, check_pair, check_pairs
from ringlet.collectives.op import Op
from ringlet.devices import visible_cores
from ringlet.errors import InvalidArgumentError

__all__ = ["all_reduce_all", "all_reduce_buffers", "default_workers", "plan_all_reduce_all"]


# More would wait for each other.
_MOST_WORKERS = 1024
_NOT_AS_IT_IS = (
    "a plan works on arrays as they are: give C-contiguous, aligned arrays in native byte order, and outs of the "
    "result's shape and dtype, each one of the arrays or apart from all of them. all_reduce_all takes any layout."
)


@functools.cache
def default_workers() -> int:
    """Give how many threads share the work of one call: the cores that this process might use when it first asked.

    Examples
    --------
    >>> default_workers() >= 1
    True
    """
    return visible_cores().count


def all_reduce_buffers(
    arrays: Sequence[Any], op: Op = Op.SUM, *, out: Array | None = None, workers: int | None = None
) -> Array:
    """Combine the arrays of all ranks where one thread has them all.

    Parameters
    ----------
    arrays : sequence of array-like
        In rank order, of one shape and dtype, of any memory layout.
    op : Op
        Which dtypes an operation takes is told there.
    out : ndarray, optional
        Where to put the result; may be one of `arrays`.
    workers : int, optional
        How many threads may share the work, this one included; by default as many as there are cores. Small arrays take
        one. The bits of the result do not depend on it.

    Returns
    -------
    ndarray
        `out`, or a read-only array; the same bits as :meth:`Member.all_reduce` gives.

    Raises
    ------
    InvalidArgumentError
        If there is no array, their shapes or dtypes differ, the operation does not take the dtype, or `out` does not
        fit.

    Examples
    --------
    >>> all_reduce_buffers([[1, 2], [3, 5]], Op.MEAN)
    array([2. , 3.5])
    """
    if type(op) is not Op:
        refuse_selection(op)
    threads = default_workers() if workers is None else _checked_workers(workers)
    arrays = as_sequence(arrays, "arrays")
    if out is not None and not isinstance(out, np.ndarray):
        # The core would take a sequence for one array for each rank.
        return _reduce(arrays, op, [out], threads)[0]
    try:
        return _core.reduce_buffers(arrays, op._value_, out, threads)
    except _core.Unusable:
        pass
    except InvalidArgumentError:
        check_pairs(arrays, op)
        raise
    result: Array = _reduce(arrays, op, None, threads) if out is None else _reduce(arrays, op, [out], threads)[0]
    return result


def all_reduce_all(arrays: Sequence[Any], op: Op, outs: Sequence[Array] | None, workers: int | None) -> Any:
    """Combine the arrays of all ranks into one shared result, or into an array for each rank.

    Parameters
    ----------
    arrays, op, workers
        As for :func:`all_reduce_buffers`.
    outs : sequence of ndarray or None
        One for each of `arrays`; each may be one of them.

    Returns
    -------
    ndarray or list of ndarray
        A read-only array, or `outs`.

    Raises
    ------
    InvalidArgumentError
        As there, and if two of `outs` share memory.

    Examples
    --------
    >>> all_reduce_all([[1, 2], [3, 5]], Op.SUM, None, 1)
    array([4, 7])
    """
    if type(op) is not Op:
        refuse_selection(op)
    threads = default_workers() if workers is None else _checked_workers(workers)
    arrays = as_sequence(arrays, "arrays")
    if outs is not None:
        outs = list(outs)
    try:
        return _core.reduce_buffers(arrays, op._value_, outs, threads)
    except _core.Unusable:
        pass
    except InvalidArgumentError:
        check_pairs(arrays, op)
        raise
    return _reduce(arrays, op, outs, threads)


def plan_all_reduce_all(
    arrays: Sequence[Array], op: Op, outs: Sequence[Array] | None, workers: int | None
) -> Callable[[], Any]:
    """Look at the arguments of :func:`all_reduce_all` once, for many runs.

    Parameters
    ----------
    arrays, op, outs, workers
        As there.

    Returns
    -------
    callable
        Each run combines what the arrays hold then.

    Raises
    ------
    InvalidArgumentError
        As there, and if an array is not one that can be worked on as it is.

    Examples
    --------
    >>> plan_all_reduce_all([np.ones(2), np.ones(2)], Op.SUM, None, 1)()
    array([2., 2.])
    """
    if type(op) is not Op:
        refuse_selection(op)
    threads = default_workers() if workers is None else _checked_workers(workers)
    places = None if outs is None else list(outs)
    try:
        return _core.plan_reduce_buffers(list(arrays), op.value, places, threads)
    except _core.Unusable:
        pass
    except InvalidArgumentError:
        check_pairs(arrays, op)
        raise
    if any(kind_of(array) is not None for array in (*arrays, *(places or ()))):
        return _plan_of_kinds(list(arrays), op, places, threads)
    all_reduce_all([np.array(array) for array in arrays], op, None, 1)  # says what is wrong, if anything is
    raise InvalidArgumentError(_NOT_AS_IT_IS)


def _plan_of_kinds(arrays: list[Any], op: Op, outs: list[Any] | None, workers: int) -> Callable[[], Any]:
    """A plan over the memory of arrays of other libraries."""
    common_kind(arrays, "rank")
    views = [as_ndarray(array) for array in arrays]
    if not all(map(is_view_of, views, arrays)):
        raise InvalidArgumentError(_NOT_AS_IT_IS)
    if outs is None:
        run = plan_all_reduce_all(views, op, None, workers)
        return lambda: in_kind_of(arrays[0], run(), is_own=True)
    dtype = as_result(views[0].dtype, op)
    outputs = [Output(out, views[0].shape, dtype) for out in outs]
    if not all(output.is_direct for output in outputs):
        raise InvalidArgumentError(_NOT_AS_IT_IS)
    run = plan_all_reduce_all(views, op, [output.direct for output in outputs], workers)

    def run_and_store() -> list[Any]:
        run()
        return [output.store() for output in outputs]

    return run_and_store


def _checked_workers(workers: Any) -> int:
    number = whole_number(workers, "workers", "a number of threads, or None for one on each core")
    if number < 1:
        raise InvalidArgumentError(f"workers is {number}: expected at least 1, or None for one on each core.")
    return min(number, _MOST_WORKERS)


def _reduce(arrays: Sequence[Any], op: Op, outs: Sequence[Any] | None, workers: int) -> Any:
    common_kind(arrays, "rank")
    buffers = as_buffers(arrays)
    _check_alike(buffers)
    check_pair(buffers[0].dtype, op)
    if outs is None:
        return in_kind_of(arrays[0], _core.reduce_buffers(buffers, op.value, None, workers), is_own=True)
    outputs = [Output(out, buffers[0].shape, as_result(buffers[0].dtype, op)) for out in outs]
    places = [output.direct for output in outputs]
    buffers = [_read_apart(buffer, places) for buffer in buffers]
    _core.reduce_buffers(buffers, op.value, places[0] if len(places) == 1 else places, workers)
    return [output.store() for output in outputs]


def _read_apart(buffer: Array, places: list[Array]) -> Array:
    """The buffer, or a copy if it shares a part, but not all, of the memory of a place that is written to."""
    for place in places:
        is_same = buffer.ctypes.data == place.ctypes.data and buffer.nbytes == place.nbytes
        if not is_same and np.may_share_memory(buffer, place):
            return np.array(buffer)
    return buffer


def _check_alike(buffers: list[Array]) -> None:
    if not buffers:
        raise InvalidArgumentError("there is nothing to reduce: give the array of at least one rank.")
    for rank, buffer in enumerate(buffers):
        if buffer.shape != buffers[0].shape or buffer.dtype != buffers[0].dtype:
            raise InvalidArgumentError(
                f"the arrays to reduce differ: {buffers[0].dtype}{list(buffers[0].shape)} at rank 0, "
                f"{buffer.dtype}{list(buffer.shape)} at rank {rank}. Give all ranks one shape and dtype."
            )
