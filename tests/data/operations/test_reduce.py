"""All elements as one value."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from ringlet.data import Dataset
from ringlet.errors import InvalidArgumentError


def test_the_last_state_is_the_result():
    assert Dataset.range(5).reduce(0, lambda total, x: total + x) == 10
    total, count = Dataset.range(5).reduce((0, 0.0), lambda s, x: (s[0] + x, s[1] + 1.0))
    assert (total, count) == (10, 5.0)


def test_of_nothing_it_is_the_initial_state():
    assert Dataset.range(0).reduce({"a": 3}, lambda s, x: s) == {"a": 3}


def test_a_tuple_is_one_argument():
    assert Dataset.zip(Dataset.range(3), Dataset.range(3)).reduce(0, lambda s, pair: s + pair[0]) == 3


def test_a_returned_list_is_a_tuple_where_the_state_is_one():
    assert Dataset.range(4).reduce((0, 0), lambda state, x: [state[0] + x, state[1] + 1]) == (6, 4)
    assert Dataset.range(4).reduce([0, 0], lambda state, x: [state[0] + x, state[1] + 1]).tolist() == [6, 4]


def test_the_result_is_an_array_that_cannot_be_written_to():
    result = Dataset.range(3).reduce(np.zeros(0, np.int64), np.append)
    assert result.tolist() == [0, 1, 2]
    assert not result.flags.writeable


@pytest.mark.parametrize(
    ("function", "error"), [(lambda s, x: float(s), TypeError), (lambda s, x: (s, s), InvalidArgumentError)]
)
def test_a_state_of_another_kind_is_refused(function, error):
    with pytest.raises(error, match="initial state"):
        Dataset.range(3).reduce(0, function)


def test_an_exception_names_its_element_and_ends_the_threads():
    with pytest.raises(ZeroDivisionError) as caught:
        Dataset.range(9).map(lambda x: x).prefetch(2).reduce(0, lambda s, x: s + 6 // int(x - 2))
    assert "reduce_func" in caught.value.__notes__[0]
    assert "element 2" in caught.value.__notes__[0]
    assert not [t for t in threading.enumerate() if t.name == "ringlet-prefetch"]


def test_a_state_may_hold_none_and_datasets():
    assert Dataset.range(3).reduce((0, None), lambda state, x: (state[0] + x, None)) == (3, None)
    joined = Dataset.range(3).reduce(Dataset.range(0), lambda state, x: state.concatenate(Dataset.from_tensors(x)))
    assert [int(x) for x in joined] == [0, 1, 2]
