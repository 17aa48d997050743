"""Numbers without end."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import INFINITE_CARDINALITY, Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError


def test_numbers_follow_each_other():
    assert [int(x) for x in Dataset.counter().take(3)] == [0, 1, 2]
    assert [x.tolist() for x in Dataset.counter(3, -2).batch(2).take(2)] == [[3, 1], [-1, -3]]


def test_there_is_no_end():
    dataset = Dataset.counter(dtype=np.float32)
    assert dataset.cardinality() == INFINITE_CARDINALITY
    assert dataset.element_spec == TensorSpec([], np.float32)


def test_numbers_beside_rows_end_with_the_rows():
    dataset = Dataset.zip(Dataset.counter(10), Dataset.from_tensor_slices(["a", "b"]))
    assert len(dataset) == 2
    assert [int(n) for n, _ in dataset] == [10, 11]
    assert dataset.node.table is not None


@pytest.mark.parametrize(
    ("arguments", "error"), [((1.5,), TypeError), ((0, "1"), TypeError), ((0, 1, bool), InvalidArgumentError)]
)
def test_arguments_are_whole_numbers(arguments, error):
    with pytest.raises(error):
        Dataset.counter(*arguments)
