"""Every operation, dtype and algorithm gives the bits of its reference."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.collectives import Algorithm, Op
from tests.collectives.contract import ALGORITHMS, DTYPES, PLACES, check_bits, fits, inputs_of, reduce_on_ranks

CASES = list(itertools.product(Op, DTYPES, Algorithm))


def test_the_table_of_cases_is_whole() -> None:
    assert set(ALGORITHMS) == set(Algorithm)
    assert len(CASES) == 2 * 4 * 4 == len(set(CASES))


@pytest.mark.parametrize(("op", "dtype", "algorithm"), CASES)
@pytest.mark.parametrize("num_ranks", [1, 2, 3, 4, 8])
def test_every_rank_has_the_bits_of_the_reference(num_ranks: int, op: Op, dtype: str, algorithm: Algorithm) -> None:
    for count, place in itertools.product((0, 1, 7, 250, 4097, 100_003), PLACES):
        if fits(algorithm, count, dtype) and not (place == "in_place" and op is Op.MEAN and dtype.startswith("int")):
            check_bits(inputs_of(num_ranks, count, dtype), op, algorithm, place)


@pytest.mark.parametrize("num_ranks", [5, 6, 7, 9, 16, 17])
@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_more_ranks_than_cores_and_odd_numbers_of_them(num_ranks: int, algorithm: Algorithm) -> None:
    for count in (1, 2, 3, 31, 63, 64, 65, 4095, 40_001):
        if fits(algorithm, count, "float32"):
            check_bits(inputs_of(num_ranks, count, "float32"), Op.SUM, algorithm, "shared")


@given(
    inputs=st.builds(inputs_of, st.integers(1, 9), st.integers(0, 5000), st.sampled_from(DTYPES), st.integers(0, 99)),
    op=st.sampled_from(Op),
    algorithm=st.sampled_from([Algorithm.AUTO, Algorithm.DIRECT, Algorithm.RING]),
    place=st.sampled_from(["shared", "out"]),
)
def test_any_call_has_the_bits_of_the_reference(
    inputs: list[np.ndarray[Any, Any]], op: Op, algorithm: Algorithm, place: str
) -> None:
    check_bits(inputs, op, algorithm, place)


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_not_a_number_infinity_and_signed_zero_follow_ieee(algorithm: Algorithm) -> None:
    inputs = [np.array([np.nan, np.inf, np.inf, -0.0, 5e-324]), np.array([1.0, 1.0, -np.inf, -0.0, 0.0])]
    with np.errstate(invalid="ignore"):
        results = reduce_on_ranks(inputs, Op.SUM, algorithm, "shared")
    for result in results:
        np.testing.assert_array_equal(result, [np.nan, np.inf, np.nan, 0.0, 5e-324])
        assert np.signbit(result[3])


@pytest.mark.parametrize("size", [2000, 2001, 8191, 8192, 131_072, 131_073, 3_000_001])
def test_results_do_not_depend_on_what_the_size_selects(size: int) -> None:
    for algorithm in (Algorithm.AUTO, Algorithm.DIRECT):
        check_bits(inputs_of(4, size // 4 + 1, "float32"), Op.SUM, algorithm, "shared")
        check_bits(inputs_of(4, size // 4 + 1, "float32"), Op.SUM, algorithm, "in_place")


def test_small_refuses_what_does_not_fit_a_slot() -> None:
    with pytest.raises(ValueError, match=r"SMALL carries at most 2000 bytes a rank.*Use AUTO or DIRECT"):
        reduce_on_ranks(inputs_of(2, 505, "float32"), Op.SUM, Algorithm.SMALL, "shared")
