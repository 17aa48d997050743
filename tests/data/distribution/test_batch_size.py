"""The size of a global batch, from the graph of a dataset."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset, Options
from ringlet.data.distribution.distribution_plan import batch_size_of
from ringlet.errors import InvalidArgumentError

TWELVE = Dataset.range(12)
BATCHES = TWELVE.batch(3)


@pytest.mark.parametrize(
    ("dataset", "size"),
    [
        # as TensorFlow's compute_batch_size answers, -1 being None
        (BATCHES, 3),
        (TWELVE.padded_batch(3), 3),
        (BATCHES.filter(lambda x: True), 3),
        (BATCHES.cache(), 3),
        (BATCHES.skip(1).take(1).shard(2, 0).shuffle(2).repeat(2).prefetch(2).with_options(Options()), 3),
        (BATCHES.concatenate(TWELVE.batch(3)), 3),
        (Dataset.zip((BATCHES, BATCHES)), 3),
        (BATCHES.batch(5), 5),
        (BATCHES.unbatch().batch(4), 4),
        (TWELVE.batch(4, drop_remainder=True).map(lambda x: x), 4),
        (Dataset.from_tensors([1, 2]), 2),
        (TWELVE.batch(3, num_parallel_calls=2), None),
        (BATCHES.map(lambda x: x[:-1]), None),
        (BATCHES.concatenate(TWELVE.batch(4)), None),
        (Dataset.zip((BATCHES, TWELVE.batch(4))), None),
        (TWELVE.flat_map(lambda x: Dataset.range(4).batch(2)), None),
        (BATCHES.rebatch([2, 1]), None),
        (BATCHES.take_while(lambda x: True), None),
        (Dataset.from_tensors((np.zeros(2), np.zeros(3))), None),
        (Dataset.from_iterable(iter([np.zeros(2)])), None),
    ],
)
def test_the_size_is_what_the_graph_tells(dataset, size):
    assert batch_size_of(dataset.node) == size


def test_scalars_have_no_size():
    with pytest.raises(InvalidArgumentError, match=r"element\[0\] is a scalar.*dataset\.batch"):
        batch_size_of(Dataset.range(3).batch(3).enumerate().node)
