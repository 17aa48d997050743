"""Datasets for several hosts of one process."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import AutoShardPolicy, Dataset, DistributedDataset, InputOptions, Options, explain
from ringlet.data.distribution.per_host_pipelines import distribute_to_hosts, distribute_to_hosts_from_function


def steps_of(dataset):
    return [[part.tolist() for part in step.values] for step in dataset]


def with_policy(dataset, policy):
    options = Options()
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.with_options(options)


@given(
    size=st.integers(0, 40),
    batch=st.integers(1, 12),
    hosts=st.integers(2, 4),
    each=st.integers(1, 3),
    drop=st.booleans(),
    policy=st.sampled_from([AutoShardPolicy.AUTO, AutoShardPolicy.OFF]),
)
def test_each_host_gets_what_it_would_get_as_a_worker(  # noqa: PLR0917
    size, batch, hosts, each, drop, policy
):
    dataset = with_policy(Dataset.range(size).batch(batch, drop_remainder=drop), policy)
    found = steps_of(distribute_to_hosts(dataset, [each] * hosts))
    workers = [
        # As a worker that asks nobody else: full steps, and those that only it has data for.
        steps_of(DistributedDataset(dataset, each, num_workers=hosts, worker_index=worker)) if each * hosts > 1 else []
        for worker in range(hosts)
    ]
    for number, step in enumerate(found):
        for host in range(hosts):
            mine = step[host * each : (host + 1) * each]
            theirs = workers[host][number] if number < len(workers[host]) else [[]] * each
            assert mine == theirs


def test_one_host_is_what_there_is_without_hosts():
    dataset = Dataset.range(10).batch(5)
    assert steps_of(distribute_to_hosts(dataset, [4])) == steps_of(DistributedDataset(dataset, 4))


def test_steps_have_parts_as_long_as_any_replica_has_data():
    found = steps_of(distribute_to_hosts(Dataset.range(5).batch(4), [2, 2]))
    assert found == [[[0], [2], [1], [3]], [[4], [], [], []]]


def test_elements_of_known_sizes_that_are_too_few_for_a_step_are_left_out():
    made = Dataset.range(12).batch(2, drop_remainder=True)
    found = distribute_to_hosts_from_function(lambda _: made, [2, 2])
    assert steps_of(found) == [[[0, 1], [2, 3]] * 2, [[4, 5], [6, 7]] * 2, [[8, 9], [10, 11]] * 2]
    assert len(steps_of(distribute_to_hosts_from_function(lambda _: made.take(5), [2, 2]))) == 2


def test_hosts_may_have_different_numbers_of_replicas_where_a_function_makes_their_datasets():
    found = distribute_to_hosts_from_function(
        lambda context: Dataset.range(4).map(lambda x: x + 10 * context.input_pipeline_id).batch(1), [1, 3]
    )
    assert steps_of(found) == [[[0], [10], [11], [12]], [[1], [13], [], []], [[2], [], [], []], [[3], [], [], []]]


def test_replicas_that_the_hosts_cannot_share_alike_are_refused():
    message = r"`num_replicas_in_sync` \(3\) that cannot be divided by `num_workers` \(2\)"
    with pytest.raises(ValueError, match=message):
        distribute_to_hosts(Dataset.range(4).batch(2), [2, 1])


def test_every_row_is_kept_where_that_is_asked_for():
    rows = [
        int(row)
        for step, _ in distribute_to_hosts(Dataset.range(11).batch(4), [2, 2], uneven="keep")
        for part in step.values
        for row in part
    ]
    assert sorted(rows) == list(range(11))


def test_an_iterator_goes_on_from_its_state():
    dataset = distribute_to_hosts(Dataset.range(32).shuffle(32, seed=5).batch(8), [2, 2])
    iterator, later = iter(dataset), iter(dataset)
    next(iterator)
    later.set_state(iterator.get_state())
    assert steps_of(later) == steps_of(iterator)


def test_the_spec_has_an_entry_for_each_replica():
    spec = distribute_to_hosts(Dataset.from_tensor_slices(np.ones((8, 3))).batch(4), [1, 1]).element_spec
    assert spec == DistributedDataset(Dataset.from_tensor_slices(np.ones((8, 3))).batch(4), 2).element_spec


def test_hosts_are_explained(capsys):
    explain(distribute_to_hosts(Dataset.range(8).batch(4), [2, 2]))
    assert "2 hosts have an input pipeline each" in capsys.readouterr().out


def test_options_count():
    options = InputOptions(experimental_per_replica_buffer_size=0)
    assert len(steps_of(distribute_to_hosts(Dataset.range(8).batch(4), [2, 2], options))) == 2
