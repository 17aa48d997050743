"""References in plain NumPy, to compare results with, and a harness that drives ranks.

Everything here is slow and simple on purpose.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ringlet.collectives import Group, Member, Op

__all__ = ["reduce_in_ring_order", "reduce_in_tree_order", "run_on_ranks"]

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")

_RING_PIECE_BYTES = 128 * 1024


def reduce_in_tree_order(inputs: Sequence[Array], op: Op = Op.SUM) -> Array:
    """Combine the arrays of all ranks in the order ((0+1)+(2+3))+((4+5)+...), a lone subtree moving up unchanged.

    Parameters
    ----------
    inputs : sequence of ndarray
        In rank order, of one shape and dtype.
    op : Op
        SUM or MEAN.

    Returns
    -------
    ndarray
        The bits that the algorithms DIRECT and SMALL give.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.testing.reduce_in_tree_order([np.array([1, 2]), np.array([3, 4]), np.array([5, 6])])
    array([ 9, 12])
    """
    level = list(inputs)
    while len(level) > 1:
        pairs = [level[i] + level[i + 1] for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(pairs) * 2 :]
    return _finish(level[0], op, len(inputs))


def reduce_in_ring_order(inputs: Sequence[Array], op: Op = Op.SUM) -> Array:
    """Combine the arrays of all ranks in the order of the ring.

    A flat array is cut into segments of P pieces of 128 KiB, the last segment into P pieces of about equal size. Piece
    c is summed from rank c on round the ring, from left to right.

    Parameters
    ----------
    inputs : sequence of ndarray
        In rank order, of one shape and dtype.
    op : Op
        SUM or MEAN.

    Returns
    -------
    ndarray
        The bits that the algorithm RING gives.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.testing.reduce_in_ring_order([np.array([1, 2]), np.array([3, 4]), np.array([5, 6])])
    array([ 9, 12])
    """
    num_ranks = len(inputs)
    flat = [np.ascontiguousarray(array).reshape(-1) for array in inputs]
    total = np.empty_like(flat[0])
    segment = num_ranks * (_RING_PIECE_BYTES // total.itemsize)
    for start in range(0, total.size, segment):
        size = min(segment, total.size - start)
        for piece in range(num_ranks):
            where = slice(start + piece * size // num_ranks, start + (piece + 1) * size // num_ranks)
            partial = flat[piece][where]
            for step in range(1, num_ranks):
                partial = partial + flat[(piece + step) % num_ranks][where]
            total[where] = partial
    return _finish(total.reshape(np.shape(inputs[0])), op, num_ranks)


def _finish(total: Array, op: Op, num_ranks: int) -> Array:
    if op is Op.SUM:
        return total
    result = np.float64 if total.dtype.kind == "i" else total.dtype
    return np.asarray(total.astype(result) / np.asarray(num_ranks, result))


def run_on_ranks(num_ranks: int, step: Callable[[Member], T], *, timeout_seconds: float = 30.0) -> list[T]:
    """Run a function on every rank of a new group, each on a thread of its own.

    Parameters
    ----------
    num_ranks : int
        Size of the group.
    step : callable
        Called with the member of each rank.
    timeout_seconds : float
        Of the group's waits.

    Returns
    -------
    list
        What `step` returned, in rank order.

    Raises
    ------
    BaseException
        What the lowest rank raised that failed, after all have ended. The group is aborted at the first failure.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.testing.run_on_ranks(2, lambda member: member.all_reduce(np.array([member.rank + 1.0])).item())
    [3.0, 3.0]
    """
    group = Group(num_ranks, timeout_seconds=timeout_seconds)
    results: list[Any] = [None] * num_ranks
    failures: list[BaseException | None] = [None] * num_ranks

    def drive(rank: int) -> None:
        try:
            results[rank] = step(group.member(rank))
        except BaseException as error:
            failures[rank] = error
            group.abort(f"rank {rank} raised {type(error).__name__}: {error}")

    threads = [threading.Thread(target=drive, args=(rank,), daemon=True) for rank in range(num_ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        if failure is not None:
            raise failure
    return results
