"""Every operation, dtype and algorithm of all_reduce gives every rank the bits of its reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.collectives import Algorithm, Op
from tests.collectives.contract import (
    ALGORITHMS,
    DTYPES,
    KIND_OF,
    OPERATIONS,
    PAIRS,
    PLACES,
    SMALL_LIMIT_BYTES,
    Case,
    case,
    cases,
    check_bits,
    check_many,
    dtype_of,
    every_dtype,
    fits,
    inputs_of,
    is_possible,
    reduce_on_ranks,
    special_of,
)

COUNTS = (0, 1, 2, 3, 7, 31, 63, 64, 65, 4095, 4097)


def test_the_table_of_cases_is_whole() -> None:
    assert set(ALGORITHMS) == set(Algorithm)
    assert len(DTYPES) == 22
    assert len(PAIRS) == len(set(PAIRS)) == 5 + 8 * 8 + (3 + 8) * 5 + 2 * 3


# --- the table --------------------------------------------------------------------------------------------------------


@every_dtype
@pytest.mark.parametrize("num_ranks", range(1, 18))
def test_every_rank_has_the_bits_of_the_reference(num_ranks: int, dtype: str) -> None:
    # Two counts and places for each number of ranks; over all of them, every algorithm has every count in every place.
    wanted: list[Case] = []
    for number, (op, algorithm) in enumerate(itertools.product(OPERATIONS[KIND_OF[dtype]], Algorithm)):
        for turn in range(2):
            count = COUNTS[(3 * num_ranks + number + 4 * turn) % len(COUNTS)]
            place = PLACES[(num_ranks + number + turn) % len(PLACES)]
            if fits(algorithm, count, dtype) and is_possible(op, dtype, place):
                wanted.append((inputs_of(num_ranks, count, dtype), op, algorithm, place))
    check_many(num_ranks, wanted)


@pytest.mark.parametrize("place", PLACES)
@every_dtype
def test_special_values_have_the_bits_of_the_reference(dtype: str, place: str) -> None:
    for num_ranks in (2, 3, 8):
        wanted: list[Case] = [
            (special_of(num_ranks, count, dtype), op, algorithm, place)
            for op, algorithm in itertools.product(OPERATIONS[KIND_OF[dtype]], Algorithm)
            for count in (123, 1501)
            if fits(algorithm, count, dtype) and is_possible(op, dtype, place)
        ]
        check_many(num_ranks, wanted)


@pytest.mark.parametrize(
    ("dtype", "num_ranks"), cases(("bool", "int8", "uint16", "float32", "bfloat16", "complex64"), (2, 3, 4, 8))
)
def test_large_arrays_have_the_bits_of_the_reference(num_ranks: int, dtype: str) -> None:
    ops = OPERATIONS[KIND_OF[dtype]]
    for number, algorithm in enumerate((Algorithm.AUTO, Algorithm.DIRECT, Algorithm.RING)):
        for count in (40_001, 150_001):
            op, place = ops[(number + num_ranks) % len(ops)], PLACES[(number + num_ranks + count) % 3]
            if is_possible(op, dtype, place):
                check_bits(inputs_of(num_ranks, count, dtype), op, algorithm, place)


@given(
    pair=st.sampled_from([(op, dtype) for op, dtype in PAIRS if KIND_OF[dtype] != "narrow"]),
    sizes=st.tuples(st.integers(1, 9), st.integers(0, 5000)),
    seed=st.integers(0, 99),
    algorithm=st.sampled_from([Algorithm.AUTO, Algorithm.DIRECT, Algorithm.RING]),
    place=st.sampled_from(["shared", "out"]),
)
def test_any_call_has_the_bits_of_the_reference(
    pair: tuple[Op, str], sizes: tuple[int, int], seed: int, algorithm: Algorithm, place: str
) -> None:
    op, dtype = pair
    num_ranks, count = sizes
    check_bits(inputs_of(num_ranks, count, dtype, seed), op, algorithm, place)


# --- what sizes select ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2000, 2001, 8191, 8192, 131_072, 131_073, 3_000_001])
@pytest.mark.parametrize("dtype", [case("float32"), case("bfloat16")])
def test_results_do_not_depend_on_what_the_size_selects(dtype: str, size: int) -> None:
    count = size // dtype_of(dtype).itemsize + 1
    for algorithm, place in itertools.product((Algorithm.AUTO, Algorithm.DIRECT), ("shared", "in_place")):
        check_bits(inputs_of(4, count, dtype), Op.SUM, algorithm, place)


def test_small_refuses_what_does_not_fit_a_slot() -> None:
    with pytest.raises(
        ValueError, match=rf"SMALL carries at most {SMALL_LIMIT_BYTES} bytes a rank.*Use AUTO or DIRECT"
    ):
        reduce_on_ranks(inputs_of(2, 505, "float32"), Op.SUM, Algorithm.SMALL, "shared")


# --- inputs and shapes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_twins_of_a_dtype_may_meet(algorithm: Algorithm) -> None:
    # Types of C of equal size are one dtype, whatever their number.
    names = ("longlong", "int64", "intc", "int32", "ulonglong", "uint64")
    for one, other in zip(names[::2], names[1::2], strict=True):
        inputs = [np.arange(5).astype(one), np.arange(5).astype(other)]
        for result in reduce_on_ranks(inputs, Op.SUM, algorithm, "out"):
            assert result.dtype == np.dtype(other)
            assert result.tolist() == [0, 2, 4, 6, 8]
