"""Consecutive elements as one."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError

FUSED_OR_NOT = pytest.mark.parametrize(
    "operation", [lambda d: d, lambda d: d.map(lambda *x: x if len(x) > 1 else x[0])]
)


@FUSED_OR_NOT
@pytest.mark.parametrize(
    ("size", "batch_size", "drop_remainder", "sizes"),
    [
        # size, batch_size, drop_remainder, sizes of the batches
        (0, 3, False, []),
        (6, 3, False, [3, 3]),
        (7, 3, False, [3, 3, 1]),
        (7, 3, True, [3, 3]),
        (2, 3, False, [2]),
        (2, 3, True, []),
        (2, 10**12, False, [2]),
    ],
)
def test_batches_are_full_but_the_last_which_can_be_dropped(operation, size, batch_size, drop_remainder, sizes):
    dataset = operation(Dataset.range(size)).batch(batch_size, drop_remainder)
    assert [len(batch) for batch in dataset] == sizes
    assert len(dataset) == len(sizes)


@FUSED_OR_NOT
def test_components_are_batched_each_by_itself(operation):
    arrays = (np.arange(4, dtype=np.int8), np.arange(24.0).reshape(4, 2, 3))
    (x, y), _ = operation(Dataset.from_tensor_slices(arrays)).batch(3)
    assert (x.dtype, x.shape, y.dtype, y.shape) == (np.int8, (3,), np.float64, (3, 2, 3))
    np.testing.assert_array_equal(y, arrays[1][:3])


def test_the_spec_knows_the_size_only_if_every_batch_is_full():
    assert Dataset.range(8).batch(4).element_spec == TensorSpec([None], np.int64)
    assert Dataset.range(8).batch(4, drop_remainder=True).element_spec == TensorSpec([4], np.int64)


def test_batches_can_be_batched():
    batches = list(Dataset.range(8).batch(2).batch(3))
    assert [batch.tolist() for batch in batches] == [[[0, 1], [2, 3], [4, 5]], [[6, 7]]]


def test_batches_of_different_size_cannot_be_batched():
    with pytest.raises(InvalidArgumentError, match=r"\[2\].*element 1 has shape \[1\]"):
        list(Dataset.range(3).batch(2).batch(2))


def test_an_element_that_fails_costs_its_batch_and_no_more():
    def fails_at_one(x):
        if x == 1:
            raise KeyError("one")
        return x

    iterator = iter(Dataset.range(6).map(fails_at_one).batch(2))
    with pytest.raises(KeyError):
        next(iterator)
    assert next(iterator).tolist() == [2, 3]
