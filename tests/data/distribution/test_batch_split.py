"""Global batches cut into parts for replicas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import Dataset, DistributedDataset, PerReplicaSpec, TensorSpec
from ringlet.errors import InvalidArgumentError

replicas = st.integers(2, 8)


def parts(distributed):
    return [[part.tolist() for part in step.values] for step in distributed]


@given(
    size=st.integers(0, 100),
    batch_size=st.integers(1, 17),
    num_replicas=replicas,
    drop_remainder=st.booleans(),
    is_shuffled=st.booleans(),
)
def test_the_parts_of_all_steps_are_the_dataset_each_element_once_in_order(
    size, batch_size, num_replicas, drop_remainder, is_shuffled
):
    dataset = Dataset.range(size)
    if is_shuffled:
        dataset = dataset.shuffle(10, seed=1, reshuffle_each_iteration=False)
    dataset = dataset.batch(batch_size, drop_remainder)
    steps = parts(DistributedDataset(dataset, num_replicas))
    assert [[x for part in step for x in part] for step in steps] == [batch.tolist() for batch in dataset]
    for step in steps:
        assert len(step) == num_replicas
        longest = math.ceil(sum(map(len, step)) / num_replicas)
        lengths = [len(part) for part in step]
        assert lengths == sorted(lengths, reverse=True)
        assert max(lengths) == longest


@pytest.mark.parametrize(
    ("rows", "num_replicas", "lengths"),
    [
        # rows of the batch, replicas, rows of the parts
        (5, 4, [2, 2, 1, 0]),
        (8, 4, [2, 2, 2, 2]),
        (1, 3, [1, 0, 0]),
        (0, 3, [0, 0, 0]),
        (7, 2, [4, 3]),
    ],
)
def test_a_batch_is_cut_as_tensorflow_cuts_it(rows, num_replicas, lengths):
    (step,) = DistributedDataset([np.zeros((rows, 3))], num_replicas)
    assert [part.shape for part in step.values] == [(length, 3) for length in lengths]


def test_parts_are_read_only_views_of_the_batch():
    array = np.arange(10)
    for step in DistributedDataset(Dataset.from_tensor_slices(array).batch(5), 2):
        for part in step.values:
            assert np.shares_memory(part, array)
            assert not part.flags.writeable


def test_every_array_of_a_structure_is_cut_by_its_own_size():
    (step,) = DistributedDataset([{"a": np.arange(8), "b": (np.arange(3),)}], 2)
    assert [part.tolist() for part in step["a"].values] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [part.tolist() for part in step["b"][0].values] == [[0, 1], [2]]


def test_batches_of_changing_size_are_each_cut_anew():
    assert parts(DistributedDataset([np.arange(n) for n in (2, 0, 3)], 2)) == [[[0], [1]], [[], []], [[0, 1], [2]]]


@pytest.mark.parametrize(
    ("dataset", "shape"),
    [
        (Dataset.range(8).batch(4, drop_remainder=True), (2,)),
        (Dataset.range(8).batch(5, drop_remainder=True), (None,)),
        (Dataset.range(8).batch(4), (None,)),
        (Dataset.from_tensor_slices(np.zeros((2, 6, 3), np.int64)), (3, 3)),
    ],
)
def test_the_spec_knows_sizes_that_all_replicas_share(dataset, shape):
    spec = TensorSpec(shape, np.int64)
    assert DistributedDataset(dataset, 2).element_spec == PerReplicaSpec(spec, spec)


def test_a_spec_of_unknown_rank_stays_unknown():
    dataset = Dataset.range(8).batch(4).map(lambda x: np.zeros([1] * len(x)))
    spec = TensorSpec(None, np.float64)
    assert DistributedDataset(dataset, 2).element_spec == PerReplicaSpec(spec, spec)


@pytest.mark.parametrize(
    "dataset",
    [Dataset.range(6), Dataset.from_tensor_slices({"x": [1, 2], "y": [[1], [2]]}), [1, 2], [(np.zeros(2), 1)]],
)
def test_elements_without_a_batch_dimension_are_refused_when_the_dataset_is_distributed(dataset):
    with pytest.raises(InvalidArgumentError, match=r"2 replicas.*dataset\.batch\(global_batch_size\)"):
        DistributedDataset(dataset, 2)


def test_elements_of_a_function_without_a_batch_dimension_are_refused_at_the_first():
    distributed = DistributedDataset(Dataset.range(6).map(lambda x: x), 2)
    with pytest.raises(InvalidArgumentError, match="no batch dimension"):
        next(iter(distributed))
    with pytest.raises(InvalidArgumentError, match="no batch dimension"):
        _ = distributed.element_spec
