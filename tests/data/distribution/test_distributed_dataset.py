"""Distributed datasets and their iterators."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

from ringlet import context
from ringlet.data import Dataset, DistributedDataset, TensorSpec
from ringlet.errors import InvalidArgumentError, OutOfRangeError
from ringlet.values import PerReplica


def test_with_one_replica_steps_are_the_elements_themselves():
    dataset = Dataset.range(3).batch(2)
    for rebatch in (True, False):
        distributed = DistributedDataset(dataset, 1, rebatch=rebatch)
        assert [step.tolist() for step in distributed] == [[0, 1], [2]]
        assert distributed.element_spec == TensorSpec([None], np.int64)


def test_with_one_replica_elements_need_no_batch_dimension():
    assert list(DistributedDataset(Dataset.range(3), 1)) == [0, 1, 2]


def test_a_step_holds_one_distributed_value_for_each_array():
    (step,) = DistributedDataset([{"x": np.arange(2), "y": (np.arange(2),)}], 2)
    assert type(step["x"]) is type(step["y"][0]) is PerReplica


def test_the_end_is_stop_iteration_for_next_and_out_of_range_for_get_next():
    iterator = iter(DistributedDataset(Dataset.range(2).batch(2), 2))
    iterator.get_next()
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iterator)
        with pytest.raises(OutOfRangeError, match="new iterator"):
            iterator.get_next()
        assert not iterator.get_next_as_optional().has_value()


def test_an_iteration_begins_afresh_and_reshuffles():
    distributed = DistributedDataset(Dataset.range(50).shuffle(50, seed=1).batch(50), 2)
    first, second = (np.concatenate(next(iter(distributed)).values).tolist() for _ in range(2))
    assert first != second
    assert sorted(first) == sorted(second) == list(range(50))


def test_the_cardinality_is_that_of_the_dataset():
    dataset = Dataset.range(10).batch(4)
    assert DistributedDataset(dataset, 2).cardinality == DistributedDataset(dataset, 2, rebatch=False).cardinality == 3


@pytest.mark.parametrize("num_replicas", [1, 2])
@pytest.mark.parametrize("call", [next, lambda i: i.get_next(), lambda i: i.get_next_as_optional()])
def test_a_replica_cannot_ask_for_the_step_of_all_replicas(num_replicas, call):
    iterator = iter(DistributedDataset(Dataset.range(4).batch(2), num_replicas))
    with (
        context.Scope(context.Mode("a strategy", 0)),
        pytest.raises(ValueError, match=r"strategy\.run\(replica_fn, args=\(next\(iterator\),\)\)"),
    ):
        call(iterator)
    with context.Scope(context.Mode("a strategy")):
        call(iterator)


@pytest.mark.parametrize("name", ["map", "batch", "take", "range"])
def test_a_transformation_of_a_distributed_dataset_says_to_do_it_before(name):
    with pytest.raises(AttributeError, match=f"'{name}'. Transform the dataset before"):
        getattr(DistributedDataset(Dataset.range(4).batch(2), 2), name)


def test_an_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"has no 'other'$"):
        _ = DistributedDataset([], 2).other


def test_a_distributed_dataset_cannot_be_distributed_again():
    with pytest.raises(TypeError, match="already distributed"):
        DistributedDataset(DistributedDataset([], 2), 2)


@pytest.mark.parametrize("num_replicas", [0, -1])
def test_there_is_at_least_one_replica(num_replicas):
    with pytest.raises(InvalidArgumentError, match="num_replicas must be one or more"):
        DistributedDataset([], num_replicas)


def test_reduce_goes_through_all_steps_and_closes_the_iterator_when_its_function_raises():
    distributed = DistributedDataset(Dataset.range(10).map(lambda x: x).repeat().batch(4).prefetch(1), 2)

    def until_three(state, step):
        if state == 3:
            raise KeyError
        return state + 1

    with pytest.raises(KeyError):
        distributed.reduce(0, until_three)
    assert not [thread for thread in threading.enumerate() if thread.name == "ringlet-prefetch"]
    assert DistributedDataset(Dataset.range(10).batch(4), 2).reduce(0, lambda n, _: n + 1) == 3


def test_closing_ends_threads_of_the_pipeline():
    distributed = DistributedDataset(Dataset.range(10).map(lambda x: x).batch(2).prefetch(1), 2)
    with iter(distributed) as iterator:
        next(iterator)
    assert not [thread for thread in threading.enumerate() if thread.name == "ringlet-prefetch"]
    assert list(iterator) == []


def test_a_dropped_iterator_takes_its_pipeline_along():
    iterator = iter(DistributedDataset(Dataset.range(10).map(lambda x: x).batch(2).prefetch(1), 2))
    next(iterator)
    dropped = weakref.ref(iterator)
    del iterator
    gc.collect()
    assert dropped() is None
    assert not [thread for thread in threading.enumerate() if thread.name == "ringlet-prefetch"]


def test_global_batches_die_with_the_last_of_their_parts():
    batches = []
    for step in DistributedDataset(Dataset.range(60).batch(4).map(lambda x: x + 1), 2):
        batches.append(weakref.ref(step.values[0].base))
        assert sum(batch() is not None for batch in batches) == 1
        del step


def test_the_text_says_for_how_many_replicas_it_is():
    assert repr(DistributedDataset([], 3)) == "<DistributedDataset for 3 replicas>"


def test_an_iterator_knows_the_spec_of_its_steps():
    distributed = DistributedDataset(Dataset.range(4).batch(2), 2)
    assert iter(distributed).element_spec == distributed.element_spec
