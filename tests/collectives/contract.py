"""The contract of all collectives, and helpers of their tests.

A new algorithm adds a row to ``ALGORITHMS``; a new operation or dtype, an entry to ``KINDS`` or ``OPERATIONS``; a new
collective, a row to ``CALLS``.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Algorithm, Group, Member, Op
from ringlet.testing import reduce_in_ring_order, reduce_in_tree_order, run_on_ranks

Array = np.ndarray[Any, np.dtype[Any]]

# --- operations and dtypes --------------------------------------------------------------------------------------------

KINDS = {
    "bool": ("bool",),
    "integer": ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    "float": ("float16", "float32", "float64"),
    "narrow": (
        "bfloat16",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
    ),
    "complex": ("complex64", "complex128"),
}
OPERATIONS = {
    "bool": (Op.MIN, Op.MAX, Op.AND, Op.OR, Op.XOR),
    "integer": tuple(Op),
    "float": (Op.SUM, Op.MEAN, Op.MIN, Op.MAX, Op.PROD),
    "narrow": (Op.SUM, Op.MEAN, Op.MIN, Op.MAX, Op.PROD),
    "complex": (Op.SUM, Op.MEAN, Op.PROD),
}
KIND_OF = {dtype: kind for kind, dtypes in KINDS.items() for dtype in dtypes}
DTYPES = tuple(KIND_OF)
needs_ml_dtypes = pytest.mark.skipif(importlib.util.find_spec("ml_dtypes") is None, reason="ml_dtypes is not installed")


def case(*values: Any) -> Any:
    """The values of one parametrized test, which is skipped where a dtype among them needs ml_dtypes."""
    is_narrow = any(isinstance(value, str) and value in KINDS["narrow"] for value in values)
    return pytest.param(*values, marks=needs_ml_dtypes) if is_narrow else pytest.param(*values)


def cases(*columns: Iterable[Any]) -> list[Any]:
    """The :func:`case` of each combination."""
    return [case(*values) for values in itertools.product(*columns)]


every_dtype = pytest.mark.parametrize("dtype", cases(DTYPES))
PAIRS = [(op, dtype) for dtype in DTYPES for op in OPERATIONS[KIND_OF[dtype]]]


def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype with a name, from ml_dtypes if NumPy lacks it."""
    if KIND_OF[name] == "narrow":
        return np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    return np.dtype(name)


# --- inputs -----------------------------------------------------------------------------------------------------------


def inputs_of(num_ranks: int, count: int, dtype: str, seed: int = 0) -> list[Array]:
    """Distinct values on every rank; floats whose sums depend on the order, integers that wrap."""
    random = np.random.default_rng([seed, num_ranks, count])
    shape, kind = (num_ranks, count), KIND_OF[dtype]
    if kind == "bool":
        return list(random.integers(0, 2, shape).astype(bool))
    if kind == "integer":
        limits = np.iinfo(dtype)
        return list(random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True))
    spread = 2 if kind == "narrow" or dtype == "float16" else 6
    values = random.standard_normal(shape) * 10.0 ** random.integers(-spread, spread + 1, shape)
    if kind == "complex":
        values = values + 1j * random.standard_normal(shape)
    with np.errstate(all="ignore"):
        return list(values.astype(dtype_of(dtype)))


SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -1e-310, 1e-45, -1e-40, 6e-8, 1.0, -1.0, 65504.0, 1e308]


def special_of(num_ranks: int, count: int, dtype: str) -> list[Array]:
    """Random NaN, infinities, zeros of both signs, denormals and the largest numbers; integers with random bits."""
    random = np.random.default_rng([7, num_ranks, count])
    found = dtype_of(dtype)
    if KIND_OF[dtype] in ("narrow", "integer"):
        return list(random.integers(0, 256, (num_ranks, count * found.itemsize)).astype(np.uint8).view(found))
    if KIND_OF[dtype] == "bool":
        return inputs_of(num_ranks, count, dtype)
    parts = random.choice(SPECIAL, (2, num_ranks, count))
    with np.errstate(all="ignore"):
        if KIND_OF[dtype] != "complex":
            return list(parts[0].astype(found))
        values = np.empty((num_ranks, count), found)
        values.real, values.imag = parts
        return list(values)


# --- comparing --------------------------------------------------------------------------------------------------------


def bits(array: Any) -> bytes:
    """The bytes of an array, in which all NaNs count as one value."""
    array = np.array(array, order="C")
    if array.dtype.kind == "c":
        array = array.reshape(-1).view(array.real.dtype)
    if array.dtype.kind not in "biu" and array.size:
        array[np.isnan(array)] = np.nan
    return array.tobytes()


def assert_same(found: Any, expected: Array, where: object = "") -> None:
    """Assert that two arrays have equal bits, shapes and dtypes."""
    assert type(found) is np.ndarray, where
    assert found.dtype == expected.dtype, where
    assert found.shape == expected.shape, where
    assert bits(found) == bits(expected), where


# --- all_reduce -------------------------------------------------------------------------------------------------------

# The order in which each algorithm combines.
ALGORITHMS: dict[Algorithm, Callable[[Sequence[Array], Op], Array]] = {
    Algorithm.AUTO: reduce_in_tree_order,
    Algorithm.DIRECT: reduce_in_tree_order,
    Algorithm.SMALL: reduce_in_tree_order,
    Algorithm.RING: reduce_in_ring_order,
}
PLACES = ("shared", "out", "in_place")
SMALL_LIMIT_BYTES = 2000


def fits(algorithm: Algorithm, count: int, dtype: str) -> bool:
    """Whether an algorithm supports an array of this size."""
    return algorithm is not Algorithm.SMALL or count * dtype_of(dtype).itemsize <= SMALL_LIMIT_BYTES


def is_possible(op: Op, dtype: str, place: str) -> bool:
    """Whether a result can be stored in place of its input."""
    return place != "in_place" or op is not Op.MEAN or KIND_OF[dtype] != "integer"


def all_reduce_into(member: Member, x: Array, op: Op, algorithm: Algorithm, place: str) -> Array:
    """One all-reduce with the result in `place`; the input of an in-place call is a copy."""
    if place == "shared":
        result = member.all_reduce(x, op, algorithm=algorithm)
        assert not result.flags.writeable
        return result
    if place == "in_place":
        out = x.copy()
        assert member.all_reduce(out, op, algorithm=algorithm, out=out) is out
        return out
    out = np.full(x.shape, 77).astype(reduce_in_tree_order([x], op).dtype)
    assert member.all_reduce(x, op, algorithm=algorithm, out=out) is out
    return out


def reduce_on_ranks(inputs: Sequence[Array], op: Op, algorithm: Algorithm, place: str) -> list[Array]:
    """Run one all-reduce with the result in `place`."""
    return run_on_ranks(len(inputs), lambda member: all_reduce_into(member, inputs[member.rank], op, algorithm, place))


def check_bits(inputs: Sequence[Array], op: Op, algorithm: Algorithm, place: str) -> None:
    """Check that every rank's result has the bits, shape and dtype of the reference."""
    expected = ALGORITHMS[algorithm](inputs, op)
    for result in reduce_on_ranks(inputs, op, algorithm, place):
        assert_same(result, expected)


Case = tuple[list[Array], Op, Algorithm, str]


def check_many(num_ranks: int, given: Sequence[Case]) -> None:
    """Run :func:`check_bits` on each case, all in the same threads."""
    found = run_on_ranks(
        num_ranks,
        lambda member: [
            all_reduce_into(member, inputs[member.rank], op, algorithm, place) for inputs, op, algorithm, place in given
        ],
    )
    for number, (inputs, op, algorithm, place) in enumerate(given):
        expected = ALGORITHMS[algorithm](inputs, op)
        for rank, results in enumerate(found):
            assert_same(results[number], expected, (rank, op, algorithm, place, inputs[0].dtype, inputs[0].shape))


# --- all collectives --------------------------------------------------------------------------------------------------

LARGE = 6000  # doubles: more than a slot carries

# A call of each collective that two or more ranks can make; `count` is a multiple of their number.
CALLS: dict[str, Callable[[Member, int], Any]] = {
    "all_reduce": lambda m, count: m.all_reduce(np.ones(count)),
    "all_reduce RING": lambda m, count: m.all_reduce(np.ones(count), algorithm=Algorithm.RING),
    "all_reduce_many": lambda m, count: m.all_reduce_many([np.ones(count), np.ones(3)], bytes_per_pack=8),
    "reduce": lambda m, count: m.reduce(np.ones(count)),
    "reduce_scatter": lambda m, count: m.reduce_scatter(np.ones(count)),
    "reduce_scatter axis": lambda m, count: m.reduce_scatter(np.ones((2, count)), axis=1),
    "exclusive_scan": lambda m, count: m.exclusive_scan(np.ones(count)),
    "plan": lambda m, count: m.plan_all_reduce(np.ones(count), Op.MAX)(),
    "all_gather": lambda m, count: m.all_gather(np.ones(count)),
    "all_gather ragged": lambda m, count: m.all_gather(np.ones((count + m.rank, 1))),
    "gather": lambda m, count: m.gather(np.ones(count)),
    "gather ragged": lambda m, count: m.gather(np.ones((count + m.rank, 1))),
    "scatter": lambda m, count: m.scatter(None if m.rank else np.ones(count)),
    "broadcast": lambda m, count: m.broadcast(np.ones(count)),
    "broadcast_many": lambda m, count: m.broadcast_many([np.ones(count)] * 2, bytes_per_pack=8),
    "all_to_all": lambda m, count: m.all_to_all(np.ones(count)),
    "all_to_all counts": lambda m, count: m.all_to_all(np.ones(count), counts=[count] + [0] * (m.num_ranks - 1)),
    "all_to_all axes": lambda m, count: m.all_to_all(np.ones((2, count)), split_axis=1, concat_axis=0),
    "collective_permute": lambda m, count: m.collective_permute(np.ones(count), [(0, 1), (1, 0)]),
    "barrier": lambda m, _: m.barrier(),
    "split": lambda m, _: m.split(0),
}


def outcomes_of(num_ranks: int, step: Callable[[Member], Any], timeout_seconds: float = 30.0) -> list[Any]:
    """Return what every rank of a group returned or raised, without aborting the group."""
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
