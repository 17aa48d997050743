"""Every policy, number of workers and replicas, size and batch: what each replica gets, step by step.

A model in plain Python says what TensorFlow gives, by the rules of ``docs/datasets.md``; sweeps hold
the plans to it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet import nest
from ringlet.data import (
    SHARD_HINT,
    AutoShardPolicy,
    Dataset,
    DistributedDataset,
    Options,
    PerReplicaSpec,
    TensorSpec,
)
from ringlet.data.operations.prefetch import Prefetch
from ringlet.errors import InvalidArgumentError, NotFoundError
from tests.data.sharing import number_files, on_workers

Steps = list[list[list[int]]]

# Workers, and replicas of each.
places = st.tuples(st.integers(1, 8), st.integers(1, 4))
sizes = st.integers(0, 100)
# Rows of a batch, and whether a short one is left out.
batchings = st.tuples(st.integers(1, 17), st.booleans())


def with_policy(dataset: Dataset, policy: AutoShardPolicy) -> Dataset:
    options = Options()
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.with_options(options)


def parts_of_step(step: Any) -> list[list[int]]:
    return [part.tolist() for part in (step.values if hasattr(step, "values") else (step,))]


def steps_of_workers(dataset: Dataset, num_workers: int, num_replicas: int) -> list[Steps]:
    """Steps of each worker, which run together."""

    def work(worker: int, total: Any) -> Steps:
        place = {"num_workers": num_workers, "worker_index": worker, "sum_over_workers": total}
        return [parts_of_step(step) for step in DistributedDataset(dataset, num_replicas, **place)]

    return on_workers(num_workers, work)


def batched(rows: list[int], size: int, drop: bool) -> list[list[int]]:
    batches = [rows[i : i + size] for i in range(0, len(rows), size)]
    return [batch for batch in batches if len(batch) == size or not drop]


def counted_off(rows: list[int], shares: list[int]) -> list[list[int]]:
    """Rows in batches of given sizes, over and over, until there are none."""
    parts: list[list[int]] = []
    at = 0
    sizes = itertools.cycle(shares)
    while (share := next(sizes)) == 0 or at < len(rows):
        parts.append(rows[at : at + share])
        at += share
    return parts


def chunks(batch: list[int], count: int) -> list[list[int]]:
    rows = -(-len(batch) // count)
    return [batch[rows * i : rows * (i + 1)] for i in range(count)]


def shares(size: int, count: int, first: int) -> list[int]:
    all_shares = [size // count + (i < size % count) for i in range(count)]
    return all_shares[first:] + all_shares[:first]


def in_steps(parts: list[list[int]], num_replicas: int) -> Steps:
    steps = [parts[i : i + num_replicas] for i in range(0, len(parts), num_replicas)]
    return [step + [[]] * (num_replicas - len(step)) for step in steps]


def model(
    policy: AutoShardPolicy, files: list[list[int]], batching: tuple[int, bool], num_workers: int, num_replicas: int
) -> list[Steps]:
    """What each worker gives, if each file is a list of rows; of no files, one list is the whole source."""
    batch, drop = batching
    total = num_workers * num_replicas
    rows = [row for file in files for row in file]
    if total == 1:
        return [[[part] for part in batched(rows, batch, drop)]]
    given = []
    for worker in range(num_workers):
        if policy is AutoShardPolicy.DATA:
            cut = [chunks(one, total)[worker::num_workers] for one in batched(rows, batch, drop)]
            given.append(cut)
            continue
        own = rows
        if policy is AutoShardPolicy.FILE:
            own = [row for file in files[worker::num_workers] for row in file]
        elif policy is AutoShardPolicy.HINT:
            own = rows[worker::num_workers]
        left = [row for one in batched(own, batch, drop) for row in one]
        parts = counted_off(left, shares(batch, total, worker * num_replicas))
        if num_workers == 1 and drop:
            parts = parts[: len(parts) // num_replicas * num_replicas]
        given.append(in_steps(parts, num_replicas))
    longest = max(map(len, given))
    return [steps + [[[]] * num_replicas] * (longest - len(steps)) for steps in given]


def pipeline(policy: AutoShardPolicy, files: list[int], batching: tuple[int, bool]) -> Dataset:
    has_files = policy in (AutoShardPolicy.FILE, AutoShardPolicy.AUTO)
    rows = number_files(files) if has_files else Dataset.range(sum(files))
    if policy is AutoShardPolicy.HINT:
        rows = rows.shard(SHARD_HINT, SHARD_HINT)
    return with_policy(rows.batch(*batching), policy)


@pytest.mark.slow
@pytest.mark.parametrize("policy", list(AutoShardPolicy))
@given(place=places, size=sizes, num_files=st.integers(8, 12), batching=batchings)
def test_every_replica_gets_what_the_rules_say(policy, place, size, num_files, batching):
    """And shards are disjoint and complete, where the policy says so."""
    num_workers, num_replicas = place
    files = [len(part) for part in np.array_split(np.arange(size), num_files)]
    if policy is AutoShardPolicy.HINT and 0 < size < num_workers:
        return  # refused, as another test says
    found = steps_of_workers(pipeline(policy, files, batching), num_workers, num_replicas)
    applied = AutoShardPolicy.FILE if policy is AutoShardPolicy.AUTO else policy
    rows = np.split(np.arange(size), np.cumsum(files)[:-1])
    assert found == model(applied, [part.tolist() for part in rows], batching, num_workers, num_replicas)
    times = Counter(row for steps in found for step in steps for part in step for row in part)
    if policy is AutoShardPolicy.OFF:
        assert set(times.values()) <= {num_workers}
    else:
        assert set(times.values()) <= {1}
    if not batching[1]:
        assert sorted(times) == list(range(size))


@given(place=places, size=sizes, batching=batchings)
def test_auto_deals_elements_where_there_are_no_files(place, size, batching):
    num_workers, num_replicas = place
    dataset = Dataset.range(size).batch(*batching)
    expected = model(AutoShardPolicy.DATA, [list(range(size))], batching, num_workers, num_replicas)
    assert steps_of_workers(dataset, num_workers, num_replicas) == expected


@given(
    policy=st.sampled_from([AutoShardPolicy.AUTO, AutoShardPolicy.DATA, AutoShardPolicy.FILE, AutoShardPolicy.HINT]),
    place=places,
    size=sizes,
    num_files=st.integers(1, 12),
    batching=batchings,
)
def test_keep_gives_every_row_once_and_weights_whose_mean_is_the_mean_of_all(policy, place, size, num_files, batching):
    num_workers, num_replicas = place
    files = [len(part) for part in np.array_split(np.arange(size), num_files)]
    dataset = pipeline(policy, files, batching)

    def work(worker: int, total: Any) -> list[Any]:
        place = {"num_workers": num_workers, "worker_index": worker, "sum_over_workers": total}
        steps = DistributedDataset(dataset, num_replicas, uneven="keep", **place)
        local = [(parts_of_step(parts), getattr(weights, "values", (weights,))) for parts, weights in steps]
        assert all(len(parts) == len(weights) == num_replicas for parts, weights in local)
        return local

    found = on_workers(num_workers, work)
    assert len({len(steps) for steps in found}) == 1
    rows = [row for steps in found for parts, _ in steps for part in parts for row in part]
    assert len(rows) == len(set(rows))
    if not batching[1]:
        assert sorted(rows) == list(range(size))
    for step in zip(*found, strict=True):
        weighed = [pair for parts, weights in step for pair in zip(parts, weights, strict=True)]
        together = [row for part, _ in weighed for row in part]
        mean = sum(weight * np.mean(part) for part, weight in weighed if part) / len(weighed)
        assert mean == pytest.approx(np.mean(together) if together else 0)


def test_keep_gives_shares_in_the_order_of_replicas():
    dataset = Dataset.range(7).batch(7)
    for worker, parts in enumerate([[[0, 1], [2, 3]], [[4, 5], [6]]]):
        ((step, weights),) = DistributedDataset(dataset, 2, num_workers=2, worker_index=worker, uneven="keep")
        assert parts_of_step(step) == parts
        assert weights.values == tuple(len(part) * 4 / 7 for part in parts)


def test_keep_tells_its_spec():
    part, weight = TensorSpec([2], np.int64), TensorSpec([], np.float64)
    distributed = DistributedDataset(Dataset.range(8).batch(4, drop_remainder=True), 2, uneven="keep")
    assert distributed.element_spec == (PerReplicaSpec(part, part), PerReplicaSpec(weight, weight))
    assert DistributedDataset(Dataset.range(3), 1, uneven="keep").element_spec == (TensorSpec([], np.int64), weight)
    off = with_policy(Dataset.range(8).batch(4), AutoShardPolicy.OFF)
    place = {"num_workers": 2, "worker_index": 0, "sum_over_workers": lambda count: count}
    unknown = TensorSpec([None], np.int64)
    assert DistributedDataset(off, 1, uneven="keep", **place).element_spec == (
        PerReplicaSpec(unknown),
        PerReplicaSpec(weight),
    )


def test_keep_over_workers_that_read_shares_of_their_own_needs_a_sum():
    dataset = with_policy(Dataset.range(8).batch(4), AutoShardPolicy.OFF)
    with pytest.raises(InvalidArgumentError, match="requires sum_over_workers"):
        DistributedDataset(dataset, 2, num_workers=2, uneven="keep")


def test_another_word_than_keep_is_refused():
    with pytest.raises(InvalidArgumentError, match="'keep' or None, got 'drop'"):
        DistributedDataset(Dataset.range(8).batch(4), 2, uneven="drop")


@pytest.mark.parametrize("num_files", [1, 2])
def test_workers_that_find_files_refuse_to_go_on_where_others_find_none(num_files):
    dataset = with_policy(number_files([4] * num_files).batch(3), AutoShardPolicy.FILE)
    for worker in range(3):
        distributed = DistributedDataset(dataset, 1, num_workers=3, worker_index=worker)
        if worker < num_files:
            with pytest.raises(InvalidArgumentError, match=rf"only has {worker + 1} file\(s\).* required 3 shards"):
                list(distributed)
        else:
            assert list(distributed) == []


def test_the_policy_file_needs_files_where_there_are_several_workers():
    dataset = with_policy(Dataset.range(8).batch(4), AutoShardPolicy.FILE)
    assert len(list(DistributedDataset(dataset, 2))) == 2
    with pytest.raises(NotFoundError, match=r"unshardable source.*TableSource does not read files.*DATA or AUTO"):
        DistributedDataset(dataset, 2, num_workers=2)


def test_a_rebatch_of_the_user_is_kept_for_one_replica_as_for_several():
    dataset = Dataset.range(8).batch(4).rebatch(2)
    assert [x.tolist() for x in DistributedDataset(dataset, 1)] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert [parts_of_step(x) for x in DistributedDataset(dataset, 2)] == [[[i], [i + 1]] for i in range(0, 8, 2)]


def test_one_replica_among_several_workers_gets_wrapped_parts_of_any_size():
    distributed = DistributedDataset(Dataset.range(8).batch(4, drop_remainder=True), 1, num_workers=2, worker_index=1)
    assert distributed.element_spec == PerReplicaSpec(TensorSpec([None], np.int64))
    assert [parts_of_step(step) for step in distributed] == [[[2, 3]], [[6, 7]]]


def test_the_rows_of_other_workers_are_not_gathered():
    rows = np.arange(24).reshape(12, 2)
    dataset = Dataset.from_tensor_slices(rows).batch(4)
    for step in DistributedDataset(dataset, 1, num_workers=2, worker_index=1):
        assert np.shares_memory(step.values[0], rows)


@pytest.mark.parametrize("policy", [AutoShardPolicy.DATA, AutoShardPolicy.OFF])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_replicas": 0}, "num_replicas must be one or more"),
        ({"num_replicas": 1, "num_workers": 0}, "num_workers must be one or more"),
        ({"num_replicas": 1, "num_workers": 2, "worker_index": 2}, "worker_index must be between 0 and 1"),
    ],
)
def test_a_place_that_cannot_be_is_refused(policy, arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        DistributedDataset(with_policy(Dataset.range(4).batch(2), policy), **arguments)


@pytest.mark.parametrize("num_workers", [1, 2])
def test_batches_of_unknown_size_are_each_cut_into_as_many_chunks_as_replicas(num_workers):
    ragged = Dataset.from_iterable([np.arange(5), np.arange(2)])
    dataset = with_policy(ragged, AutoShardPolicy.OFF)
    found = [parts_of_step(s) for s in DistributedDataset(dataset, 2, num_workers=num_workers)]
    expected = [chunks(list(range(n)), 2 * num_workers) for n in (5, 2)]
    assert found == in_steps([part for step in expected for part in step], 2)


def test_a_dataset_is_made_ahead_for_each_replica_unless_it_ends_in_a_prefetch():
    def buffers(dataset: Dataset, **settings: Any) -> list[int]:
        plan = DistributedDataset(dataset, 2, **settings).decision.plan
        nodes = list(plan.inputs)
        for node in nodes:
            nodes.extend(node.inputs)
        return [node.buffer_size for node in nodes if isinstance(node, Prefetch)]

    dataset = Dataset.range(8).batch(4)
    assert buffers(dataset) == [1]
    assert buffers(dataset, buffer_size=3) == [3]
    assert buffers(dataset, buffer_size=0) == []
    assert buffers(dataset.prefetch(5)) == [5]
    assert buffers(with_policy(dataset, AutoShardPolicy.OFF)) == [2]
    assert buffers(with_policy(dataset.prefetch(5), AutoShardPolicy.OFF)) == [5]
    assert buffers(dataset, rebatch=False) == [2]


def test_an_iterable_that_can_be_read_once_is_dealt_without_knowing_its_specs():
    dataset = with_policy(Dataset.from_iterable(iter([np.arange(3), np.arange(2)])), AutoShardPolicy.OFF)
    found = [parts_of_step(step) for step in DistributedDataset(dataset, 2)]
    assert found == [[[0, 1], [2]], [[0], [1]]]


def test_structures_are_shared_alike():
    dataset = Dataset.range(5).map(lambda x: {"a": x, "b": (x, x + 1)}).batch(5)
    (step,) = DistributedDataset(with_policy(dataset, AutoShardPolicy.OFF), 2)
    assert nest.map_structure(parts_of_step, step) == {
        "a": [[0, 1, 2], [3, 4]],
        "b": ([[0, 1, 2], [3, 4]], [[1, 2, 3], [4, 5]]),
    }
