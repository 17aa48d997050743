"""Reference reductions in plain NumPy, and a harness that runs functions on ranks.

The references favour simplicity over speed. The bits of NaNs are unspecified.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ringlet.collectives import Group, Member, Op
from ringlet.errors import CollectiveAborted
from ringlet.errors.exception_notes import class_and_text
from ringlet.module_names import list_public

__all__ = ["identity_of", "reduce_in_ring_order", "reduce_in_tree_order", "run_on_ranks", "scan_in_rank_order"]

__dir__ = list_public(__name__)

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")

_RING_PIECE_BYTES = 128 * 1024


# --- orders -----------------------------------------------------------------------------------------------------------


def reduce_in_tree_order(inputs: Sequence[Array], op: Op = Op.SUM) -> Array:
    """Reduce the arrays of all ranks in the order ((0+1)+(2+3))+((4+5)+...); an unpaired subtree moves up unchanged.

    Parameters
    ----------
    inputs : sequence of ndarray
        In rank order, with equal shapes and dtypes.
    op : Op
        An operation that the dtype supports.

    Returns
    -------
    ndarray
        Bit for bit the result of every algorithm except RING.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.testing.reduce_in_tree_order([np.array([1, 2]), np.array([3, 4]), np.array([5, 6])])
    array([ 9, 12])
    """
    level = [_partial(array) for array in inputs]
    while len(level) > 1:
        pairs = [_combine(level[i], level[i + 1], op) for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(pairs) * 2 :]
    return _finish(level[0], op, len(inputs), inputs[0])


def reduce_in_ring_order(inputs: Sequence[Array], op: Op = Op.SUM) -> Array:
    """Reduce the arrays of all ranks in the order of the ring.

    For P ranks, the flat array is split into segments of P chunks of 128 KiB, the last segment into P chunks of about
    equal size. Chunk c is reduced in the order of the ranks c, c+1, …, modulo P, from left to right.

    Parameters
    ----------
    inputs : sequence of ndarray
        In rank order, with equal shapes and dtypes.
    op : Op
        An operation that the dtype supports.

    Returns
    -------
    ndarray
        Bit for bit the result of the algorithm RING.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.testing.reduce_in_ring_order([np.array([1, 2]), np.array([3, 4]), np.array([5, 6])])
    array([ 9, 12])
    """
    num_ranks = len(inputs)
    flat = [_partial(array) for array in inputs]
    total = np.empty_like(flat[0])
    segment = num_ranks * (_RING_PIECE_BYTES // inputs[0].itemsize)
    for start in range(0, total.size, segment):
        size = min(segment, total.size - start)
        for piece in range(num_ranks):
            where = slice(start + piece * size // num_ranks, start + (piece + 1) * size // num_ranks)
            partial = flat[piece][where]
            for step in range(1, num_ranks):
                partial = _combine(partial, flat[(piece + step) % num_ranks][where], op)
            total[where] = partial
    return _finish(total, op, num_ranks, inputs[0])


def scan_in_rank_order(inputs: Sequence[Array], op: Op = Op.SUM) -> list[Array]:
    """Reduce, for each rank, the arrays of the lower ranks from left to right.

    Parameters
    ----------
    inputs : sequence of ndarray
        In rank order, with equal shapes and dtypes.
    op : Op
        An operation that the dtype supports, other than MEAN.

    Returns
    -------
    list of ndarray
        Bit for bit the result of ``exclusive_scan`` on each rank; :func:`identity_of` on rank 0.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.testing.scan_in_rank_order([np.array([1, 2]), np.array([3, 4]), np.array([5, 6])])
    [array([0, 0]), array([1, 2]), array([4, 6])]
    """
    results = [np.full(inputs[0].shape, identity_of(op, inputs[0].dtype), inputs[0].dtype)]
    partial = _partial(inputs[0])
    for array in inputs[1:]:
        results.append(_finish(partial, op, 1, inputs[0]))
        partial = _combine(partial, _partial(array), op)
    return results


def identity_of(op: Op, dtype: Any) -> Any:
    """Return the identity element of an operation.

    Parameters
    ----------
    op : Op
        An operation that the dtype supports, other than MEAN.
    dtype : dtype

    Returns
    -------
    scalar
        Of the dtype: 0 for SUM, OR and XOR, 1 for PROD, all bits set (or True) for AND, the largest value (infinity if
        the dtype has one) for MIN, the smallest for MAX.

    Examples
    --------
    >>> import ringlet
    >>> print(ringlet.testing.identity_of(Op.MIN, "int8"), ringlet.testing.identity_of(Op.MAX, "float32"))
    127 -inf
    """
    dtype = np.dtype(dtype)
    if op in (Op.MIN, Op.MAX):
        return _extremes(dtype)[0 if op is Op.MAX else 1]
    if op is Op.AND:
        return ~np.zeros((), dtype)[()]
    return np.array(1 if op is Op.PROD else 0).astype(dtype)[()]


def _extremes(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the smallest and the largest value, including infinities."""
    if dtype.kind == "b":
        return np.False_, np.True_
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return dtype.type(limits.min), dtype.type(limits.max)
    if not _is_narrow(dtype):
        return dtype.type(-np.inf), dtype.type(np.inf)
    # Some narrow floats have no infinities, so all values of the dtype are compared.
    codes = np.arange(2 ** (8 * dtype.itemsize)).astype(f"uint{8 * dtype.itemsize}").view(dtype)
    with np.errstate(all="ignore"):
        values = codes.astype(np.float32)
    return codes[np.nanargmin(values)], codes[np.nanargmax(values)]


# --- arithmetic -------------------------------------------------------------------------------------------------------


def _is_narrow(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is a float of 8 or 16 bits, of NumPy or ml_dtypes."""
    return dtype == np.float16 or dtype.type.__module__ == "ml_dtypes"


def _partial(array: Array) -> Array:
    """Convert an array to a partial result: flat, with narrow floats as float32."""
    flat = np.asarray(array).reshape(-1)
    with np.errstate(all="ignore"):
        return flat.astype(np.float32) if _is_narrow(flat.dtype) else flat


def _combine(left: Array, right: Array, op: Op) -> Array:
    with np.errstate(all="ignore"):
        if op is Op.PROD and left.dtype.kind == "c":
            return _complex_product(left, right)
        return _COMBINE[op](left, right)


def _complex_product(left: Array, right: Array) -> Array:
    """Return the product by its definition: NumPy may fuse operations, which changes the rounding."""
    product = np.empty_like(left)
    product.real = left.real * right.real - left.imag * right.imag
    product.imag = left.real * right.imag + left.imag * right.real
    return product


def _minimum(left: Array, right: Array) -> Array:
    """Return NumPy's minimum, which propagates NaN, with -0 less than +0."""
    least = np.minimum(left, right)
    if left.dtype.kind != "f":
        return least
    return np.where((left == 0) & (right == 0), np.where(np.signbit(left), left, right), least)


def _maximum(left: Array, right: Array) -> Array:
    """Return NumPy's maximum, which propagates NaN, with +0 greater than -0."""
    largest = np.maximum(left, right)
    if left.dtype.kind != "f":
        return largest
    return np.where((left == 0) & (right == 0), np.where(np.signbit(left), right, left), largest)


_COMBINE: dict[Op, Callable[[Array, Array], Array]] = {
    Op.SUM: np.add,
    Op.MEAN: np.add,
    Op.MIN: _minimum,
    Op.MAX: _maximum,
    Op.PROD: np.multiply,
    Op.AND: np.bitwise_and,
    Op.OR: np.bitwise_or,
    Op.XOR: np.bitwise_xor,
}


def _finish(total: Array, op: Op, num_ranks: int, like: Array) -> Array:
    """Divide a mean, round a reduction to its result dtype, once, and reshape it to the input's shape."""
    dtype = np.asarray(like).dtype
    with np.errstate(all="ignore"):
        if op is Op.MEAN:
            if dtype.kind in "iu":
                dtype = np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)
                total = total.astype(dtype)
            total = _divide(total, num_ranks)
        return np.asarray(total.astype(dtype)).reshape(np.shape(like))


def _divide(total: Array, num_ranks: int) -> Array:
    if total.dtype.kind != "c":
        return np.asarray(total / np.asarray(num_ranks, total.dtype))
    mean = np.empty_like(total)  # divide the parts separately: NumPy's complex division rounds differently
    mean.real, mean.imag = _divide(total.real, num_ranks), _divide(total.imag, num_ranks)
    return mean


# --- ranks ------------------------------------------------------------------------------------------------------------


def run_on_ranks(num_ranks: int, step: Callable[[Member], T], *, timeout_seconds: float = 30.0) -> list[T]:
    """Run a function on every rank of a new group, each in its own thread.

    Parameters
    ----------
    num_ranks : int
        Size of the group.
    step : callable
        Called on each rank with its member of the group.
    timeout_seconds : float
        Time-out of each wait in a collective.

    Returns
    -------
    list
        The results of `step`, in rank order.

    Raises
    ------
    BaseException
        The exception of the lowest rank that failed by itself, raised after all ranks have ended. The first failure
        aborts the group, so that other ranks may fail with `CollectiveAborted`.

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
            group.abort(f"rank {rank} raised {class_and_text(error)}")

    threads = [threading.Thread(target=drive, args=(rank,), daemon=True) for rank in range(num_ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    raised = [failure for failure in failures if failure is not None]
    if raised:
        raise min(raised, key=lambda failure: isinstance(failure, CollectiveAborted))
    return results
