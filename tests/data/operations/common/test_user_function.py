"""Functions of users."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset
from ringlet.data.operations.common.user_function import UserFunction, as_bool, check_callable, node_of, spread
from ringlet.errors import InvalidArgumentError


def test_an_exception_says_for_which_element():
    def fails(x):
        raise KeyError(x)

    with pytest.raises(KeyError) as caught:
        UserFunction(fails, "predicate")(7, "a")
    assert caught.value.__notes__[0].startswith("predicate test_an_exception_says_for_which_element.<locals>.fails")
    assert "element 7" in caught.value.__notes__[0]


def test_stop_iteration_does_not_look_like_an_end():
    with pytest.raises(InvalidArgumentError, match="raised StopIteration for element 3"):
        UserFunction(lambda: next(iter(())), "map_func")(3)


def test_a_step_looks_at_the_answer_and_its_errors_have_the_number_too():
    def step(function, x):
        if function(x) != 4:
            raise ValueError(x)
        return "four"

    function = UserFunction(lambda x: x + 1, "scan_func", step)
    assert function(0, 3) == "four"
    with pytest.raises(ValueError, match="5") as caught:
        function(1, 5)
    assert "element 1" in caught.value.__notes__[0]


@pytest.mark.parametrize("true", [True, np.True_, np.array(True)])
def test_a_bool_is_python_s_or_numpy_s(true):
    assert as_bool(true, "") is True


@pytest.mark.parametrize("answer", [1, 0, None, "True", np.array([True]), np.int64(1)])
def test_what_only_counts_as_true_is_no_bool(answer):
    with pytest.raises(InvalidArgumentError, match="one bool"):
        as_bool(answer, "predicate gave")


def test_only_plain_tuples_are_several_arguments():
    assert spread((1, 2)) == (1, 2)
    assert spread([1, 2]) == ([1, 2],)
    assert spread({"a": 1}) == ({"a": 1},)


def test_only_datasets_have_nodes():
    dataset = Dataset.range(3)
    assert node_of(dataset) is dataset.node
    assert node_of(3) is None
    with pytest.raises(TypeError, match="filter requires a function of an element, got 3"):
        check_callable(3, "filter")
