"""What strategies call."""

from __future__ import annotations

import pytest

from ringlet.data import Dataset, InputContext, InputOptions, InputReplicationMode
from ringlet.data.distribution.distribute import distribute_dataset, distribute_datasets_from_function

PER_REPLICA = InputReplicationMode.PER_REPLICA


def parts(distributed):
    return [[part.tolist() for part in step.values] for step in distributed]


def test_a_dataset_is_cut():
    assert parts(distribute_dataset(Dataset.range(3).batch(3), 2, InputOptions())) == [[[0, 1], [2]]]


def test_a_dataset_for_each_replica_needs_a_function():
    with pytest.raises(NotImplementedError, match="distribute_datasets_from_function"):
        distribute_dataset(Dataset.range(3).batch(3), 2, InputOptions(experimental_replication_mode=PER_REPLICA))


def test_the_function_is_called_once_with_the_place_of_this_worker():
    contexts = []

    def dataset_fn(place):
        contexts.append(place)
        return Dataset.range(3).batch(2)

    assert parts(distribute_datasets_from_function(dataset_fn, 3)) == [[[0, 1], [2], []]]
    assert contexts == [InputContext(1, 0, 3)]


def test_the_function_is_called_for_each_replica_when_that_is_asked_for():
    contexts = []

    def dataset_fn(place):
        contexts.append(place)
        return Dataset.range(place.input_pipeline_id, 6, place.num_input_pipelines).batch(2)

    options = InputOptions(experimental_replication_mode=PER_REPLICA)
    distributed = distribute_datasets_from_function(dataset_fn, 2, options)
    assert parts(distributed) == [[[0, 2], [1, 3]], [[4], [5]]]
    assert contexts == [InputContext(2, 0, 2), InputContext(2, 1, 2)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            InputOptions(experimental_place_dataset_on_device=True),
            "requires experimental_replication_mode=InputReplicationMode.PER_REPLICA",
        ),
        (InputOptions(True, PER_REPLICA, True), "requires experimental_fetch_to_device=False"),
        (InputOptions(None, PER_REPLICA, True), "requires experimental_fetch_to_device=False"),
    ],
)
def test_options_that_contradict_each_other_are_refused_before_the_function_is_called(options, message):
    with pytest.raises(ValueError, match=message):
        distribute_datasets_from_function(lambda _: pytest.fail("called"), 2, options)


def test_a_dataset_placed_on_its_device_and_not_fetched_is_accepted():
    options = InputOptions(False, PER_REPLICA, True)
    assert len(parts(distribute_datasets_from_function(lambda _: Dataset.range(4).batch(2), 2, options))) == 2
