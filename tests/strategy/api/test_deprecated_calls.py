"""Calls that TensorFlow keeps for old programs do what their successors do."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import ringlet
from ringlet.values import PerReplica
from tests.strategy.replicas import mirrored, replica_id

TWO = mirrored(2)
DATASET = ringlet.data.Dataset.range(8).batch(4)


def test_unwrap_gives_local_results_and_warns():
    with pytest.warns(DeprecationWarning, match="use strategy.experimental_local_results") as caught:
        assert TWO.unwrap(PerReplica([1, 2])) == (1, 2)
    assert caught[0].filename == __file__


def test_the_older_name_of_datasets_from_functions_warns():
    with pytest.warns(DeprecationWarning, match=r"use strategy\.distribute_datasets_from_function"):
        dataset = TWO.experimental_distribute_datasets_from_function(lambda _: DATASET)
    assert [part.tolist() for part in next(iter(dataset)).values] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_the_older_place_of_colocation_warns():
    with pytest.warns(DeprecationWarning, match=r"extended\.colocate"), pytest.raises(RuntimeError, match="inside"):
        TWO.colocate_vars_with(1.5)


def test_a_step_is_fed_by_an_iterator_over_global_batches():
    iterator = TWO.make_dataset_iterator(DATASET)
    assert TWO.experimental_run(lambda x: x.tolist(), iterator)[0].values == (0, 2)
    assert TWO.experimental_run(lambda x: int(x.sum()), iterator).values == (9, 13)
    with pytest.raises(ringlet.errors.OutOfRangeError):
        TWO.experimental_run(lambda x: x, iterator)


def test_the_mode_of_input_functions_is_shown_as_tensorflow_shows_it():
    default = inspect.signature(ringlet.Strategy.make_input_fn_iterator).parameters["replication_mode"].default
    assert default is ringlet.InputReplicationMode.PER_WORKER


def test_a_step_without_an_iterator_takes_nothing():
    assert TWO.experimental_run(lambda: replica_id() + 1000).values == (1000, 1001)


def test_a_step_is_fed_by_batches_that_a_function_makes():
    contexts: list[ringlet.InputContext] = []

    def input_fn(context: ringlet.InputContext) -> ringlet.data.Dataset:
        contexts.append(context)
        return DATASET

    iterator = TWO.make_input_fn_iterator(input_fn, ringlet.InputReplicationMode.PER_WORKER)
    assert TWO.experimental_run(lambda x: int(x[0]), iterator).values == (0, 4)
    assert [context.num_replicas_in_sync for context in contexts] == [2]


@pytest.mark.parametrize("mode", [ringlet.InputReplicationMode.PER_REPLICA, "PER_WORKER", 3, None])
def test_batches_of_a_function_are_for_workers(mode):
    with pytest.raises(ValueError, match="Input replication mode not supported"):
        TWO.make_input_fn_iterator(lambda _: DATASET, mode)


def test_arrays_become_a_dataset_of_their_rows():
    arrays = {"x": np.arange(4).reshape(2, 2), "y": np.array([5, 6])}
    for make in (TWO.experimental_make_numpy_dataset, TWO.extended.experimental_make_numpy_dataset):
        rows = list(make(arrays, session=None))
        assert [row["x"].tolist() for row in rows] == [[0, 1], [2, 3]]
        assert [int(row["y"]) for row in rows] == [5, 6]
    assert len(ringlet.get_strategy().experimental_make_numpy_dataset(np.ones((3, 2)))) == 3


def test_an_iterator_begins_again():
    iterator = TWO.make_dataset_iterator(DATASET)
    first = [part.tolist() for part in iterator.get_next().values]
    iterator.initialize()
    assert [part.tolist() for part in iterator.get_next().values] == first


def test_batches_of_a_function_that_are_too_few_for_a_step_are_left_out():
    iterator = TWO.make_input_fn_iterator(lambda _: ringlet.data.Dataset.range(5).batch(2))
    assert len(list(iterator)) == 1
    assert len(list(iter(TWO.distribute_datasets_from_function(lambda _: ringlet.data.Dataset.range(5).batch(2))))) == 2


def test_an_input_function_may_give_a_function_or_any_iterable():
    calls = iter(range(10))
    assert TWO.make_input_fn_iterator(lambda _: lambda: next(calls)).get_next().values == (0, 1)
    iterator = TWO.make_input_fn_iterator(lambda _: [np.array([1]), np.array([2])])
    assert [part.tolist() for part in iterator.get_next().values] == [[1], [2]]
    for other in (5, None, "text", np.ones(3)):
        with pytest.raises(ValueError, match=r"input_fn must return a tf\.data\.Dataset or a callable"):
            TWO.make_input_fn_iterator(lambda _, other=other: other)


def test_the_default_strategy_has_these_iterators_too():
    default = ringlet.get_strategy()
    iterator = default.make_dataset_iterator(DATASET)
    assert iterator.get_next().tolist() == [0, 1, 2, 3]
    iterator.initialize()
    assert len(list(iterator)) == 2
    assert len(list(default.make_input_fn_iterator(lambda _: DATASET))) == 2


def test_what_prepares_sessions_does_nothing():
    config = object()
    assert TWO.update_config_proto(config) is config
    assert TWO.configure(config, task_type="worker") is None
