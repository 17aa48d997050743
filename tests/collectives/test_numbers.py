"""What results are as numbers: exact cases of IEEE 754, integers that wrap, and bounds of the error."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Algorithm, Op, all_reduce_buffers
from ringlet.testing import reduce_in_tree_order
from tests.collectives.contract import Array, case, cases, dtype_of, inputs_of, reduce_on_ranks

every_algorithm = pytest.mark.parametrize("algorithm", list(Algorithm))


def combine(inputs: list[Array], op: Op, algorithm: Algorithm = Algorithm.AUTO) -> Array:
    """What all ranks have, which is one thing."""
    results = reduce_on_ranks(inputs, op, algorithm, "shared")
    assert len({result.tobytes() for result in results}) == 1
    return results[0]


# --- special values ---------------------------------------------------------------------------------------------------


@every_algorithm
def test_not_a_number_infinity_and_signed_zero_follow_ieee(algorithm: Algorithm) -> None:
    inputs = [np.array([np.nan, np.inf, np.inf, -0.0, 5e-324]), np.array([1.0, 1.0, -np.inf, -0.0, 0.0])]
    result = combine(inputs, Op.SUM, algorithm)
    np.testing.assert_array_equal(result, [np.nan, np.inf, np.nan, 0.0, 5e-324])
    assert np.signbit(result[3])


@every_algorithm
@pytest.mark.parametrize("dtype", cases(("float16", "float32", "float64", "bfloat16", "float8_e5m2")))
def test_a_nan_of_any_rank_wins_over_numbers(dtype: str, algorithm: Algorithm) -> None:
    for op in (Op.MIN, Op.MAX, Op.SUM, Op.PROD, Op.MEAN):
        inputs = [np.array(row).astype(dtype_of(dtype)) for row in ([np.nan, 1, 1], [1, np.nan, 1], [1, 1, np.nan])]
        assert np.isnan(combine(inputs, op, algorithm)).all()


@every_algorithm
@pytest.mark.parametrize("dtype", cases(("float16", "float32", "float64", "bfloat16", "float8_e4m3fn")))
def test_minus_zero_is_less_than_plus_zero(dtype: str, algorithm: Algorithm) -> None:
    inputs = [np.array(row).astype(dtype_of(dtype)) for row in ([0.0, -0.0, -0.0], [-0.0, 0.0, -0.0])]
    assert np.signbit(combine(inputs, Op.MIN, algorithm)).tolist() == [True, True, True]
    assert np.signbit(combine(inputs, Op.MAX, algorithm)).tolist() == [False, False, True]


@every_algorithm
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_denormals_are_not_flushed(dtype: str, algorithm: Algorithm) -> None:
    least = np.finfo(dtype).smallest_subnormal
    inputs = [np.array([least, -least, least], dtype), np.array([least, least, 0], dtype)]
    assert combine(inputs, Op.SUM, algorithm).tolist() == [2 * float(least), 0, float(least)]
    half = [np.array([np.finfo(dtype).tiny], dtype), np.array([0.5], dtype)]
    assert float(combine(half, Op.PROD, algorithm)[0]) == float(np.finfo(dtype).tiny) / 2


# --- integers and bool ------------------------------------------------------------------------------------------------


@every_algorithm
def test_integer_sums_and_products_wrap(algorithm: Algorithm) -> None:
    inputs = [np.array([127, -128, 100], np.int8), np.array([1, -1, 3], np.int8)]
    assert combine(inputs, Op.SUM, algorithm).tolist() == [-128, 127, 103]
    assert combine(inputs, Op.PROD, algorithm).tolist() == [127, -128, 44]
    large = [np.array([2**64 - 1], np.uint64), np.array([3], np.uint64)]
    assert combine(large, Op.SUM, algorithm).tolist() == [2]
    assert combine(large, Op.PROD, algorithm).tolist() == [2**64 - 3]


# dtype, dtype of the mean, mean of (100, 100, 100) as wrapped sum / 3
MEANS = [
    ("int8", "float32", 44 / 3),
    ("uint8", "float32", 44 / 3),
    ("int16", "float32", 100.0),
    ("uint16", "float32", 100.0),
    ("int32", "float64", 100.0),
    ("uint64", "float64", 100.0),
]


@pytest.mark.parametrize(("dtype", "result_dtype", "mean"), MEANS)
def test_the_mean_of_integers_is_that_of_their_wrapped_sum(dtype: str, result_dtype: str, mean: float) -> None:
    result = combine([np.array([100], dtype)] * 3, Op.MEAN)
    assert result.dtype == result_dtype
    assert result[0] == np.dtype(result_dtype).type(mean)


@every_algorithm
def test_bool_is_combined_as_truth(algorithm: Algorithm) -> None:
    inputs = [np.array([False, False, True, True]), np.array([False, True, False, True])]
    assert combine(inputs, Op.AND, algorithm).tolist() == combine(inputs, Op.MIN, algorithm).tolist() == [0, 0, 0, 1]
    assert combine(inputs, Op.OR, algorithm).tolist() == combine(inputs, Op.MAX, algorithm).tolist() == [0, 1, 1, 1]
    assert combine(inputs, Op.XOR, algorithm).tolist() == [0, 1, 1, 0]


# --- narrow floats ----------------------------------------------------------------------------------------------------


# dtype, bits of precision
NARROW = [("float16", 11), ("bfloat16", 8), ("float8_e4m3fn", 4), ("float8_e5m2", 3)]


@every_algorithm
@pytest.mark.parametrize(("dtype", "precision"), [case(*row) for row in NARROW])
def test_narrow_floats_are_rounded_once_at_the_end(dtype: str, precision: int, algorithm: Algorithm) -> None:
    # Each of 16 ranks adds a quarter of a unit in the last place, so that nothing but the last rounding sees all of it.
    small = np.full(3, 2.0 ** -(precision + 1)).astype(dtype_of(dtype))
    result = combine([np.ones(3).astype(dtype_of(dtype)), *[small] * 16], Op.SUM, algorithm)
    assert result.astype(float).tolist() == [1 + 2.0 ** (3 - precision)] * 3


def test_a_sum_beyond_the_largest_number_follows_the_conversion_of_its_dtype() -> None:
    assert np.isinf(combine([np.array([65504], np.float16)] * 2, Op.SUM)[0])
    assert combine([np.array([65504], np.float16)] * 2, Op.MEAN)[0] == 65504


# --- complex numbers --------------------------------------------------------------------------------------------------


@every_algorithm
def test_products_of_complex_numbers_round_each_term(algorithm: Algorithm) -> None:
    # With a fused operation the real part would not be 0.
    x = np.array([complex(1 + 2.0**-27, 1 + 2.0**-27)])
    product = combine([x, x], Op.PROD, algorithm)
    assert product[0].real == 0
    assert product[0].imag == 2 * (x[0].real * x[0].real)


def test_the_mean_of_complex_numbers_divides_both_parts() -> None:
    inputs = [np.array([complex(np.inf, 3.0)]), np.array([complex(1.0, 1.0)])]
    assert combine(inputs, Op.MEAN)[0] == complex(np.inf, 2.0)


# --- the error --------------------------------------------------------------------------------------------------------
#
# In the tree a term goes through ceil(log2 P) additions at most, round the ring through P - 1. Each multiplies it by
# 1 + d with |d| <= u = 2^-p, for p bits of precision: half a unit in the last place. So with k roundings a sum is off
# by at most k u / (1 - k u) times the sum of the absolute values; a mean has one rounding more. A product has P - 1
# roundings in any order, each of the product itself. Narrow floats do all this as float32, and then round once to their
# own precision.

PRECISION = {"float16": 11, "float32": 24, "float64": 53, "bfloat16": 8}


def bound(roundings: int, precision: int) -> float:
    """How far such a chain of roundings can get, as a part of the exact value."""
    unit = 2.0**-precision
    return roundings * unit / (1 - roundings * unit)


def exact(values: list[Any], op: Op) -> Fraction:
    numbers = [Fraction(float(value)) for value in values]
    return math.prod(numbers, start=Fraction(1)) if op is Op.PROD else sum(numbers, Fraction(0))


@pytest.mark.parametrize("algorithm", [Algorithm.AUTO, Algorithm.RING])
@pytest.mark.parametrize("dtype", cases(PRECISION))
@pytest.mark.parametrize("num_ranks", [2, 3, 5, 8, 17])
def test_sums_and_means_err_within_the_bound(num_ranks: int, dtype: str, algorithm: Algorithm) -> None:
    inputs = [array / 1024 for array in inputs_of(num_ranks, 40, dtype)]
    roundings = num_ranks - 1 if algorithm is Algorithm.RING else math.ceil(math.log2(num_ranks))
    inner = max(PRECISION[dtype], 24)
    for op in (Op.SUM, Op.MEAN):
        result = combine(inputs, op, algorithm)
        for i, found in enumerate(result):
            column = [float(array[i]) for array in inputs]
            divisor = num_ranks if op is Op.MEAN else 1
            true = math.fsum(column) / divisor
            limit = bound(roundings + (op is Op.MEAN) + 1, inner) * math.fsum(map(abs, column)) / divisor
            if inner != PRECISION[dtype]:
                limit += bound(1, PRECISION[dtype]) * (abs(true) + limit) + 2.0**-25  # the last for denormals
            assert abs(float(found) - true) <= limit


@pytest.mark.parametrize("algorithm", [Algorithm.AUTO, Algorithm.RING])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("num_ranks", [2, 3, 8, 17])
def test_products_err_within_the_bound(num_ranks: int, dtype: str, algorithm: Algorithm) -> None:
    random = np.random.default_rng(num_ranks)
    inputs = [random.uniform(0.5, 2, 40).astype(dtype) for _ in range(num_ranks)]
    result = combine(inputs, Op.PROD, algorithm)
    for i, found in enumerate(result):
        true = exact([array[i] for array in inputs], Op.PROD)
        assert abs(Fraction(float(found)) - true) <= Fraction(bound(num_ranks - 1, PRECISION[dtype])) * true


def test_the_reference_itself_is_exact_where_numbers_are() -> None:
    # Small integers have exact sums and products in every float: the references are held to plain Python here.
    random = np.random.default_rng(0)
    values = random.integers(-3, 4, (5, 100))
    for dtype in ("float16", "float32", "complex128", "int16"):
        inputs = list(values.astype(dtype))
        for op, expected in ((Op.SUM, values.sum(axis=0)), (Op.PROD, values.prod(axis=0))):
            np.testing.assert_array_equal(reduce_in_tree_order(inputs, op), expected)
            np.testing.assert_array_equal(all_reduce_buffers(inputs, op), expected)
    for op, expected in ((Op.MIN, values.min(axis=0)), (Op.MAX, values.max(axis=0))):
        np.testing.assert_array_equal(reduce_in_tree_order(list(values), op), expected)
