"""Elements that a predicate lets through."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import UNKNOWN_CARDINALITY, Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError


def test_elements_for_which_the_predicate_is_true_stay():
    assert [int(x) for x in Dataset.range(7).filter(lambda x: x % 3 == 0)] == [0, 3, 6]


@pytest.mark.parametrize("true", [True, np.True_, np.array(True)])
def test_python_and_numpy_say_true(true):
    assert len(list(Dataset.range(2).filter(lambda x: true))) == 2


@pytest.mark.parametrize("answer", [1, None, np.array([True]), (True,), "yes", np.int64(0)])
def test_anything_but_one_bool_is_refused_and_named_with_its_element(answer):
    with pytest.raises(InvalidArgumentError, match=r"not return a bool for element 0 of this iteration: .*one bool"):
        list(Dataset.range(2).filter(lambda x: answer))


def test_a_tuple_comes_as_several_arguments():
    dataset = Dataset.from_tensor_slices(([1, 2, 3], [3, 2, 1])).filter(lambda x, y: x >= y)
    assert [(int(x), int(y)) for x, y in dataset] == [(2, 2), (3, 1)]


def test_the_spec_stays_and_the_cardinality_is_unknown():
    dataset = Dataset.range(3).filter(lambda x: True)
    assert dataset.element_spec == TensorSpec([], np.int64)
    assert dataset.cardinality() == UNKNOWN_CARDINALITY


def test_an_exception_names_its_element_and_iteration_goes_on_behind_it():
    iterator = iter(Dataset.range(4).filter(lambda x: 6 % int(x - 1) == 0))
    assert next(iterator) == 0
    with pytest.raises(ZeroDivisionError) as caught:
        next(iterator)
    assert "element 1" in caught.value.__notes__[0]
    assert [int(x) for x in iterator] == [2, 3]


def test_a_predicate_that_raises_stop_iteration_does_not_end_the_dataset_in_silence():
    with pytest.raises(InvalidArgumentError, match="raised StopIteration for element 0"):
        list(Dataset.range(3).filter(lambda x: next(iter(()))))


def test_a_predicate_must_be_callable():
    with pytest.raises(TypeError, match="filter requires a function"):
        Dataset.range(3).filter(3)
