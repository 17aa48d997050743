"""Datasets of what iterables give; `tests/data/graph/test_iterable.py` has the rules for elements."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import UNKNOWN_CARDINALITY, Dataset, TensorSpec
from ringlet.values import PerReplica


def test_elements_are_those_of_the_iterable():
    dataset = Dataset.from_iterable({"x": [n, n], "t": "text"} for n in range(3))
    assert [(e["x"].tolist(), e["t"]) for e in dataset] == [([n, n], "text") for n in range(3)]


def test_operations_follow_as_on_any_dataset():
    dataset = Dataset.from_iterable(range(7)).map(lambda x: x * 2).shuffle(3, seed=0).batch(7).prefetch(1)
    (batch,) = dataset
    assert sorted(batch.tolist()) == [0, 2, 4, 6, 8, 10, 12]


def test_only_the_length_of_a_list_or_a_tuple_is_known():
    assert [Dataset.from_iterable(x).cardinality() for x in ([1], (1, 2), range(5))] == [1, 2, UNKNOWN_CARDINALITY]


def test_the_spec_is_that_of_the_first_element_with_an_unknown_size():
    assert Dataset.from_iterable([np.zeros((2, 3))]).element_spec == TensorSpec((None, 3), np.float64)


class Table:
    """A table of rows, as Hugging Face has them: it has a shape, too."""

    shape, column_names = (2, 1), ["x"]

    def __iter__(self):
        yield from ({"x": 1}, {"x": 2})


def test_a_table_of_rows_gives_its_rows():
    (batch,) = Dataset.from_iterable(Table()).batch(2)
    assert batch["x"].tolist() == [1, 2]


@pytest.mark.parametrize("value", [np.zeros((4, 2)), {"x": np.zeros(3)}, "text", 5, PerReplica((1, 2))])
def test_what_cannot_be_meant_is_refused(value):
    with pytest.raises(TypeError, match="is not a dataset"):
        Dataset.from_iterable(value)
