"""Datasets of consecutive numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError

numbers = st.integers(-40, 40)


@given(
    args=st.one_of(
        st.tuples(numbers),
        st.tuples(numbers, numbers),
        st.tuples(numbers, numbers, st.integers(-9, 9).filter(bool)),
    ),
    batch_size=st.integers(1, 9),
)
def test_a_range_has_the_numbers_of_pythons_range(args, batch_size):
    dataset, expected = Dataset.range(*args), list(range(*args))
    assert [int(x) for x in dataset] == expected
    assert [int(x) for batch in dataset.batch(batch_size) for x in batch] == expected
    assert len(dataset) == len(expected)


def test_numbers_are_int64_unless_told_otherwise():
    assert Dataset.range(3).element_spec == TensorSpec([], np.int64)
    assert [type(x) for x in Dataset.range(2, output_type=np.float32)] == [np.float32, np.float32]


def test_a_range_of_any_length_takes_no_memory_before_it_is_read():
    assert next(iter(Dataset.range(10**18).batch(2, drop_remainder=True))).tolist() == [0, 1]


def test_the_numbers_next_to_the_limits_of_int64_are_given():
    last = 2**63 - 1
    assert [int(x) for x in Dataset.range(last - 2, last)] == [last - 2, last - 1]
    assert [x.tolist() for x in Dataset.range(-(2**63), -(2**63) + 2).batch(2)] == [[-(2**63), -(2**63) + 1]]


@pytest.mark.parametrize(
    ("args", "output_type"),
    [
        # what fits only just
        ((2**63, 2**63 + 3), np.uint64),
        ((2**64 - 1, 2**64 - 9, -3), np.uint64),
        ((-(2**63), 2**63, 2**64 - 1), np.int64),
        ((5, 6, 2**70), np.int64),
        ((2**70, 2**70), np.int8),
        ((-65504, 65505, 65504), np.float16),
        ((127, -129, -255), np.int8),
    ],
)
def test_numbers_up_to_the_limits_of_their_dtype_are_given_one_by_one_and_in_batches(args, output_type):
    dataset = Dataset.range(*args, output_type=output_type)
    assert [int(x) for x in dataset] == list(range(*args))
    assert [int(x) for batch in dataset.batch(2) for x in batch] == list(range(*args))


@pytest.mark.parametrize(
    ("args", "output_type", "limit"),
    [
        # range, dtype, the limit that is named
        ((2**63 + 1,), np.int64, 2**63 - 1),
        ((300,), np.int8, 127),
        ((-1, 1), np.uint8, 0),
        ((2**64, 2**64 + 1), np.uint64, 2**64 - 1),
        ((100000, 100003), np.float16, 65504),
        ((-65505, 0), np.float16, -65504),
        ((2**63, 2**63 + 1), np.float32, 2**63 - 1),
    ],
)
def test_numbers_that_do_not_fit_are_refused_with_those_that_do(args, output_type, limit):
    with pytest.raises(InvalidArgumentError, match=rf"does not fit.* {limit} "):
        Dataset.range(*args, output_type=output_type)


def test_as_many_numbers_as_python_can_count_are_accepted_and_no_more():
    assert len(Dataset.range(-1, 2**63 - 2)) == 2**63 - 1
    with pytest.raises(InvalidArgumentError, match="more numbers than the maximum length of a dataset"):
        Dataset.range(-1, 2**63 - 1)


def test_a_step_of_zero_is_refused():
    with pytest.raises(InvalidArgumentError, match="step"):
        Dataset.range(0, 5, 0)


def test_a_dtype_that_is_no_number_is_refused():
    with pytest.raises(InvalidArgumentError, match="bool"):
        Dataset.range(5, output_type=bool)


@pytest.mark.parametrize("args", [(), (1, 2, 3, 4), (1.5,), ("3",)])
def test_arguments_are_one_to_three_integers(args):
    with pytest.raises(TypeError, match=r"Dataset\.range takes"):
        Dataset.range(*args)
