"""Iterators that may begin again."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.data import Dataset, DistributedDataset
from ringlet.data.input_iterator import FunctionSteps, InputIterator
from ringlet.errors import OutOfRangeError


def values(step):
    return [part.tolist() for part in step.values]


def test_it_begins_again_wherever_it_was():
    iterator = InputIterator(DistributedDataset(Dataset.range(8).batch(4), 2))
    first = values(iterator.get_next())
    iterator.initialize()
    assert values(iterator.get_next()) == first == [[0, 1], [2, 3]]
    assert values(iterator.get_next("CPU:0")) == [[4, 5], [6, 7]]
    with pytest.raises(OutOfRangeError, match="Call initialize"):
        iterator.get_next()
    assert iterator.initializer is None
    assert [values(step) for step in iterator] == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def test_the_end_may_be_asked_for():
    iterator = InputIterator(DistributedDataset(Dataset.range(2).batch(2), 2))
    assert iterator.get_next_as_optional().has_value()
    assert not iterator.get_next_as_optional().has_value()
    plain = InputIterator([1])
    assert plain.get_next_as_optional().get_value() == 1
    assert not plain.get_next_as_optional().has_value()


def test_it_knows_what_its_steps_look_like():
    dataset = DistributedDataset(Dataset.range(8).batch(4), 2)
    assert InputIterator(dataset).element_spec == dataset.element_spec


def test_a_closed_one_has_no_steps_until_it_begins_again():
    iterator = InputIterator(DistributedDataset(Dataset.range(8).batch(4), 2))
    iterator.close()
    assert list(iterator) == []
    iterator.initialize()
    assert len(list(iterator)) == 2


def test_a_replica_does_not_take_steps():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    iterator = strategy.make_dataset_iterator(Dataset.range(8).batch(4))
    with pytest.raises(ValueError, match="called by a replica"):
        strategy.run(iterator.get_next)


def test_a_function_is_called_for_each_replica_of_each_step():
    numbers = iter(range(10))
    steps = iter(FunctionSteps([lambda: {"x": np.array(next(numbers))}] * 2))
    assert [values(next(steps)["x"]) for _ in range(2)] == [[0, 1], [2, 3]]
    assert next(iter(FunctionSteps([lambda: 5]))) == 5


def test_what_a_function_raises_ends_nothing():
    answers = iter([ValueError("once"), 1, 2])

    def function():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    iterator = InputIterator(FunctionSteps([function] * 2))
    with pytest.raises(ValueError, match="once"):
        iterator.get_next()
    assert iterator.get_next().values == (1, 2)
