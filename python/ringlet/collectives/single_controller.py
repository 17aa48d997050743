"""All-reduces by a single caller that holds the arrays of all ranks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.collectives.adapters.array_adapters import common_kind, in_kind_of, kind_of
from ringlet.collectives.argument_parsing import as_sequence, refuse_selection, whole_number
from ringlet.collectives.buffers import Array, Output, as_buffers, as_ndarray, copy_if_partly_overlapping, is_view_of
from ringlet.collectives.collective_dtypes import as_result, check_pair, check_pairs
from ringlet.collectives.op import Op
from ringlet.devices import visible_cores
from ringlet.errors import InvalidArgumentError

# Maximum number of threads; more do not speed up a call.
_MOST_WORKERS = 1024
_NOT_AS_IT_IS = (
    "a plan does not convert arrays: pass C-contiguous, aligned arrays in native byte order, and outs of the result's "
    "shape and dtype, each either one of the arrays or disjoint from all of them. all_reduce_all accepts any layout."
)


@functools.cache
def default_workers() -> int:
    """Return the default number of threads: the number of cores available to this process, determined once."""
    return visible_cores().count


def all_reduce_buffers(
    arrays: Sequence[Any], op: Op = Op.SUM, *, out: Array | None = None, workers: int | None = None
) -> Array:
    """Combine the arrays of all ranks in one call.

    Parameters
    ----------
    arrays : sequence of array-like
        In rank order, of one shape and dtype, of any memory layout.
    op : Op
        See :class:`Op` for the supported dtypes.
    out : ndarray, optional
        Array for the result; may be one of `arrays`.
    workers : int, optional
        Maximum number of threads, including the caller's; the number of cores by default. Small arrays use one
        thread. The bits of the result do not depend on `workers`.

    Returns
    -------
    ndarray
        `out`, or a read-only array; the same bits as from :meth:`Member.all_reduce`.

    Raises
    ------
    InvalidArgumentError
        If `arrays` is empty, shapes or dtypes differ, the operation does not support the dtype, `out` does not fit, or
        `workers` is not positive.

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
        # The core would interpret a sequence as one output for each rank.
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
    """Combine the arrays of all ranks into one result, read-only in NumPy, or into an output for each rank."""
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
    """Return a callable that runs :func:`all_reduce_all` on the arrays' current contents, without further checks.

    Raises InvalidArgumentError if an array would need a conversion.
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
    all_reduce_all([np.array(array) for array in arrays], op, None, 1)  # raises a specific error, if any
    raise InvalidArgumentError(_NOT_AS_IT_IS)


def _plan_of_kinds(arrays: list[Any], op: Op, outs: list[Any] | None, workers: int) -> Callable[[], Any]:
    """Return a plan over the memory of arrays of other libraries."""
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
    number = whole_number(workers, "workers", "a number of threads, or None for one per core")
    if number < 1:
        raise InvalidArgumentError(f"workers is {number}: expected at least 1, or None for one per core.")
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
    for place in places:
        buffers = [copy_if_partly_overlapping(place, buffer) for buffer in buffers]
    _core.reduce_buffers(buffers, op.value, places[0] if len(places) == 1 else places, workers)
    return [output.store() for output in outputs]


def _check_alike(buffers: list[Array]) -> None:
    if not buffers:
        raise InvalidArgumentError("the list of arrays to reduce is empty: pass the array of at least one rank.")
    for rank, buffer in enumerate(buffers):
        if buffer.shape != buffers[0].shape or buffer.dtype != buffers[0].dtype:
            raise InvalidArgumentError(
                f"the arrays to reduce differ: {buffers[0].dtype}{list(buffers[0].shape)} at rank 0, "
                f"{buffer.dtype}{list(buffer.shape)} at rank {rank}. Pass arrays of one shape and dtype."
            )
