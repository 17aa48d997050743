"""What every algorithm of every reducing collective must do.

A new algorithm adds a row to ``ALGORITHMS``; a new dtype or operation, an entry to its list.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringlet.collectives import Algorithm, Group, Member, Op
from ringlet.testing import reduce_in_ring_order, reduce_in_tree_order, run_on_ranks

Array = np.ndarray[Any, np.dtype[Any]]

# The order of summation of each algorithm.
ALGORITHMS: dict[Algorithm, Callable[[Sequence[Array], Op], Array]] = {
    Algorithm.AUTO: reduce_in_tree_order,
    Algorithm.DIRECT: reduce_in_tree_order,
    Algorithm.SMALL: reduce_in_tree_order,
    Algorithm.RING: reduce_in_ring_order,
}
DTYPES = ("float32", "float64", "int32", "int64")
PLACES = ("shared", "out", "in_place")


def inputs_of(num_ranks: int, count: int, dtype: str, seed: int = 0) -> list[Array]:
    """Distinct values on every rank; floats whose sums depend on the order, integers that wrap."""
    random = np.random.default_rng([seed, num_ranks, count])
    if np.dtype(dtype).kind == "i":
        limits = np.iinfo(dtype)
        return list(random.integers(limits.min, limits.max, (num_ranks, count), dtype=dtype, endpoint=True))
    scales = 10.0 ** random.integers(-6, 7, (num_ranks, count))
    return list((random.standard_normal((num_ranks, count)) * scales).astype(dtype))


def reduce_on_ranks(inputs: Sequence[Array], op: Op, algorithm: Algorithm, place: str) -> list[Array]:
    """Run one all-reduce with the result in `place`; the inputs of in-place calls are copies."""
    dtype = ALGORITHMS[algorithm](inputs, op).dtype

    def step(member: Any) -> Array:
        x = inputs[member.rank]
        if place == "shared":
            return member.all_reduce(x, op, algorithm=algorithm)
        out = x.copy() if place == "in_place" else np.full(x.shape, 77, dtype)
        result = member.all_reduce(out if place == "in_place" else x, op, algorithm=algorithm, out=out)
        assert result is out
        return result

    return run_on_ranks(len(inputs), step)


def check_bits(inputs: Sequence[Array], op: Op, algorithm: Algorithm, place: str) -> None:
    """Every rank has the bits, shape and dtype of the reference."""
    expected = ALGORITHMS[algorithm](inputs, op)
    for result in reduce_on_ranks(inputs, op, algorithm, place):
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        assert result.tobytes() == expected.tobytes()
        assert result.flags.writeable == (place != "shared")


def fits(algorithm: Algorithm, count: int, dtype: str) -> bool:
    """Whether an algorithm takes an array of this size."""
    return algorithm is not Algorithm.SMALL or count * np.dtype(dtype).itemsize <= 2000


def outcomes_of(num_ranks: int, step: Callable[[Member], Any], timeout_seconds: float = 30.0) -> list[Any]:
    """What every rank of a group returned or raised; nobody aborts the group on their behalf."""
    group = Group(num_ranks, timeout_seconds=timeout_seconds)

    def drive(member: Member) -> Any:
        try:
            return step(member)
        except Exception as error:
            return error

    outcomes: list[Any] = [None] * num_ranks

    def keep(rank: int) -> None:
        outcomes[rank] = drive(group.member(rank))

    threads = [threading.Thread(target=keep, args=(rank,)) for rank in range(num_ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
