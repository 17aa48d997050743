"""Whole elements dealt out to replicas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import Dataset, DistributedDataset, PerReplicaSpec, TensorSpec


def parts(distributed):
    return [[part.tolist() for part in step.values] for step in distributed]


def dealt(dataset, num_replicas):
    return DistributedDataset(dataset, num_replicas, rebatch=False)


@given(size=st.integers(0, 100), batch_size=st.integers(1, 17), num_replicas=st.integers(2, 8))
def test_consecutive_elements_go_to_consecutive_replicas_and_none_is_lost(size, batch_size, num_replicas):
    dataset = Dataset.range(size).batch(batch_size)
    steps = parts(dealt(dataset, num_replicas))
    flat = [part for step in steps for part in step]
    assert all(len(step) == num_replicas for step in steps)
    assert flat[: len(dataset)] == [batch.tolist() for batch in dataset]
    assert flat[len(dataset) :] == [[]] * (len(flat) - len(dataset))
    assert len(flat) - len(dataset) < num_replicas


@given(size=st.integers(0, 100), batch_size=st.integers(1, 17), num_replicas=st.integers(2, 8))
def test_elements_of_known_sizes_that_are_too_few_for_a_step_are_left_out(size, batch_size, num_replicas):
    dataset = Dataset.range(size).batch(batch_size, drop_remainder=True)
    steps = parts(dealt(dataset, num_replicas))
    assert len(steps) == len(dataset) // num_replicas
    assert all(len(part) == batch_size for step in steps for part in step)


def test_a_replica_without_data_gets_arrays_without_rows_and_without_entries_of_unknown_sizes():
    ragged = Dataset.range(3).batch(1).map(lambda x: {"x": np.zeros((len(x), 4)), "y": np.zeros((2, len(x)), np.int8)})
    *_, last = dealt(ragged, 2)
    assert [part.shape for part in last["x"].values] == [(1, 4), (0, 4)]
    assert [part.shape for part in last["y"].values] == [(2, 1), (0, 0)]
    assert last["y"].values[1].dtype == np.int8


def test_a_replica_without_data_from_an_iterable_gets_the_other_element_without_rows():
    *_, last = dealt([{"x": np.zeros((2, 3), np.int8), "n": 1}] * 3, 2)
    assert last["x"].values[1].shape == (0, 3)
    assert last["x"].values[1].dtype == np.int8


def test_a_dataset_without_end_never_lacks_an_element():
    iterator = iter(dealt(Dataset.range(3).batch(2).repeat(), 2))
    steps = [[part.tolist() for part in next(iterator).values] for _ in range(3)]
    assert steps == [[[0, 1], [2]], [[0, 1], [2]], [[0, 1], [2]]]


def test_the_spec_is_that_of_the_element_for_each_replica():
    spec = TensorSpec([5], np.int64)
    assert dealt(Dataset.range(9).batch(5, True), 3).element_spec == PerReplicaSpec(spec, spec, spec)


def test_replicas_with_datasets_of_their_own_go_on_until_none_has_data():
    distributed = DistributedDataset.of_replicas([Dataset.range(n).batch(2) for n in (2, 5, 0)])
    assert parts(distributed) == [[[0, 1], [0, 1], []], [[], [2, 3], []], [[], [4], []]]


def test_replicas_whose_elements_differ_in_structure_are_refused():
    distributed = DistributedDataset.of_replicas([[{"x": np.zeros(2)}], [np.zeros(2)]])
    with pytest.raises(ValueError, match="structure"):
        next(iter(distributed))


def test_closing_closes_every_dataset():
    closed = []

    def generate(name):
        try:
            while True:
                yield np.zeros(2)
        finally:
            closed.append(name)

    iterator = iter(DistributedDataset.of_replicas([generate("a"), generate("b")]))
    next(iterator)
    iterator.close()
    assert closed == ["a", "b"]
    assert list(iterator) == []


@given(size=st.integers(0, 100), batch_size=st.integers(1, 17), num_replicas=st.integers(1, 8))
def test_without_padding_elements_that_are_too_few_are_left_out_whatever_their_sizes(size, batch_size, num_replicas):
    dataset = Dataset.range(size).batch(batch_size)
    steps = list(dealt(dataset, num_replicas).without_padding())
    assert len(steps) == len(dataset) // num_replicas
