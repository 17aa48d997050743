import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.reference import Inputs, WrongAnswerError, tree_reduce

DTYPES = ("float32", "float64", "int32", "int64")


def filled(inputs):
    arrays = [np.empty(inputs.count, inputs.dtype) for _ in range(inputs.num_ranks)]
    for rank, array in enumerate(arrays):
        inputs.fill(rank, array)
    return arrays


def test_the_tree_pairs_neighbours_and_moves_a_lone_one_up():
    a, b, c, d, e = (np.array([x], np.float32) for x in (1e8, 3.0, -1e8, 5.0, 7.0))
    assert tree_reduce([a, b, c, d, e], "SUM").tobytes() == (((a + b) + (c + d)) + e).tobytes()


def test_integer_sums_wrap():
    assert tree_reduce([np.array([2**31 - 1], np.int32), np.array([1], np.int32)], "SUM").tolist() == [-(2**31)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_mean_of_integers_is_a_float64(dtype):
    mean = tree_reduce([np.array([1], dtype), np.array([2], dtype)], "MEAN")
    assert mean.dtype == (np.float64 if dtype.startswith("int") else dtype)
    assert mean.tolist() == [1.5]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["SUM", "MEAN"])
@pytest.mark.parametrize("count", [1, 1000, (1 << 18) + 3])
def test_the_right_answer_passes(dtype, op, count):
    inputs = Inputs(3, count, np.dtype(dtype), is_exact=False)
    inputs.check(tree_reduce(filled(inputs), op), op, "tree")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("place", [0, 1 << 18, (1 << 18) + 2])
def test_one_wrong_element_is_refused_and_named(dtype, place):
    inputs = Inputs(2, (1 << 18) + 3, np.dtype(dtype), is_exact=False)
    wrong = tree_reduce(filled(inputs), "SUM")
    wrong[place] += 1000
    with pytest.raises(WrongAnswerError, match=rf"^ring: element {place} is .*No time is reported"):
        inputs.check(wrong, "SUM", "ring")


def test_another_order_of_rounding_is_refused():
    inputs = Inputs(4, 1000, np.dtype("float32"), is_exact=False)
    a, b, c, d = filled(inputs)
    with pytest.raises(WrongAnswerError):
        inputs.check(((a + b) + c) + d, "SUM", "left to right")


def test_exact_inputs_have_one_sum_in_any_order():
    inputs = Inputs(4, 1000, np.dtype("float32"), is_exact=True)
    a, b, c, d = filled(inputs)
    inputs.check(((d + b) + c) + a, "SUM", "any order")


def test_a_missing_rank_is_refused():
    inputs = Inputs(3, 1000, np.dtype("float32"), is_exact=True)
    a, b, _ = filled(inputs)
    with pytest.raises(WrongAnswerError):
        inputs.check(a + b, "SUM", "two of three")


def test_a_block_in_the_place_of_another_is_refused():
    block = 1 << 18
    inputs = Inputs(2, 2 * block, np.dtype("float32"), is_exact=True)
    right = tree_reduce(filled(inputs), "SUM")
    with pytest.raises(WrongAnswerError):
        inputs.check(np.concatenate([right[block:], right[:block]]), "SUM", "swapped")


@pytest.mark.parametrize("change", [lambda x: x[:-1], lambda x: x.astype(np.float64), lambda x: x.astype(np.int32)])
def test_another_shape_or_dtype_is_refused(change):
    inputs = Inputs(2, 10, np.dtype("float32"), is_exact=True)
    with pytest.raises(WrongAnswerError, match="gave"):
        inputs.check(change(tree_reduce(filled(inputs), "SUM")), "SUM", "changed")


@given(ranks=st.integers(1, 9), count=st.integers(1, 100))
def test_every_rank_contributes_other_values(ranks, count):
    arrays = filled(Inputs(ranks, count + 10, np.dtype("float64"), is_exact=False))
    assert len({array.tobytes() for array in arrays}) == ranks
