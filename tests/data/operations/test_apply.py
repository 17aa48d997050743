"""Functions of datasets."""

from __future__ import annotations

import pytest

from ringlet.data import Dataset


def test_the_function_gets_the_dataset_and_gives_another():
    dataset = Dataset.range(5)
    assert dataset.apply(lambda d: d) is dataset
    assert [x.tolist() for x in dataset.apply(lambda d: d.batch(3))] == [[0, 1, 2], [3, 4]]


@pytest.mark.parametrize("answer", [5, None, [1, 2]])
def test_it_must_give_a_dataset(answer):
    with pytest.raises(TypeError, match="must return a Dataset"):
        Dataset.range(3).apply(lambda d: answer)
    with pytest.raises(TypeError, match="apply requires"):
        Dataset.range(3).apply(answer)
