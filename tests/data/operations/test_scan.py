"""A state handed from element to element."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

from ringlet.data import Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError
from tests.data.state_cases import through_a_file

Pair = namedtuple("Pair", "total count")


def test_every_element_sees_the_state_that_those_before_it_left():
    dataset = Dataset.range(4).scan(10, lambda state, x: (state + x, (state, x)))
    assert [(int(s), int(x)) for s, x in dataset] == [(10, 0), (10, 1), (11, 2), (13, 3)]
    assert len(dataset) == 4
    assert dataset.element_spec == (TensorSpec([], np.int64),) * 2


def test_a_tuple_is_one_argument():
    dataset = Dataset.zip(Dataset.range(3), Dataset.range(3)).scan(0, lambda s, pair: (s + pair[0], pair[1]))
    assert [int(x) for x in dataset] == [0, 1, 2]


def test_the_shape_of_the_state_may_change():
    dataset = Dataset.range(3).scan(np.zeros(0, np.int64), lambda s, x: (np.append(s, x), len(s)))
    assert [int(x) for x in dataset] == [0, 1, 2]


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda s, x: (float(s), x), TypeError, "float64"),
        (lambda s, x: ((s, s), x), InvalidArgumentError, "structure"),
        (lambda s, x: x, TypeError, "pair"),
        (lambda s, x: (s, x, x), TypeError, "pair"),
    ],
)
def test_answers_that_do_not_fit_are_refused_with_their_element(function, error, words):
    with pytest.raises(error, match=words) as caught:
        list(Dataset.range(3).scan(0, function))
    assert "scan_func" in caught.value.__notes__[0]
    assert "element 0" in caught.value.__notes__[0]


def test_behind_an_exception_the_state_is_that_in_front_of_it():
    iterator = iter(Dataset.range(4).scan(0, lambda s, x: (s + 1, s + 6 // int(x - 1) * 0)))
    assert next(iterator) == 0
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    assert [int(x) for x in iterator] == [1, 2]


def test_a_buffer_that_the_function_fills_again_changes_no_element():
    buffer = np.zeros(1, np.int64)

    def fill(state, x):
        buffer[:] = x
        return state + 1, buffer

    assert [int(x[0]) for x in Dataset.range(3).scan(0, fill).batch(3).unbatch()] == [0, 1, 2]


def test_the_state_is_saved_in_its_structure():
    def step(state, x):
        return Pair(state.total + x, state.count + 1), state.total

    def open_it():
        return iter(Dataset.range(6).scan(Pair(0, 0), step))

    iterator = open_it()
    assert [int(next(iterator)) for _ in range(3)] == [0, 0, 1]
    restored = open_it()
    restored.set_state(through_a_file(iterator.get_state()))
    assert [int(x) for x in restored] == [3, 6, 10]


def test_a_function_must_be_callable():
    with pytest.raises(TypeError, match="scan requires a function"):
        Dataset.range(3).scan(0, 1)


def test_sizes_that_depend_on_unknown_ones_are_not_known():
    dataset = Dataset.range(5).batch(2).scan(0, lambda state, x: (state, x))
    assert dataset.element_spec == TensorSpec([None], np.int64)


def test_sizes_that_change_with_the_state_are_not_known():
    dataset = Dataset.range(3).scan(np.zeros(1), lambda state, x: (np.concatenate([state, state]), state))
    assert [x.shape for x in dataset] == [(1,), (2,), (4,)]
    assert dataset.element_spec == TensorSpec([None], np.float64)
    assert Dataset.range(3).scan(np.zeros(1), lambda state, x: (state, state)).element_spec.shape == (1,)
