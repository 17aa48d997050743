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


@pytest.mark.parametrize(("args", "output_type"), [((2**63 + 1,), np.int64), ((300,), np.int8), ((-1, 1), np.uint8)])
def test_numbers_that_do_not_fit_are_refused(args, output_type):
    with pytest.raises(InvalidArgumentError, match="fit"):
        Dataset.range(*args, output_type=output_type)


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
