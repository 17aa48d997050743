"""Iterators of distributed datasets: their ends, and their states."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringlet.data import AutoShardPolicy, Dataset, DistributedDataset, Options
from ringlet.errors import FailedPreconditionError, OutOfRangeError
from tests.data.state_cases import through_a_file


def with_policy(dataset, policy):
    options = Options()
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.with_options(options)


def parts(step):
    step, *_ = step if isinstance(step, tuple) else (step,)
    return [part.tolist() for part in (step.values if hasattr(step, "values") else (step,))]


def datasets(policy, size, batch, uneven, num_workers):
    dataset = Dataset.range(size).shuffle(20).map(lambda x: x).batch(batch)
    place = {"num_workers": num_workers, "worker_index": num_workers - 1}
    return DistributedDataset(with_policy(dataset, policy), 3, uneven=uneven, **place)


@pytest.mark.parametrize(
    ("policy", "uneven"), [(AutoShardPolicy.DATA, None), (AutoShardPolicy.OFF, None), (AutoShardPolicy.DATA, "keep")]
)
@given(sizes=st.tuples(st.integers(0, 40), st.integers(1, 9)), num_workers=st.integers(1, 2), taken=st.integers(0, 10))
def test_a_restored_iterator_gives_the_steps_that_were_to_come(policy, uneven, sizes, num_workers, taken):
    distributed = datasets(policy, *sizes, uneven, num_workers)
    with iter(distributed) as iterator, iter(distributed) as later:
        for _ in range(taken):
            next(iterator, None)
        later.set_state(through_a_file(iterator.get_state()))
        assert [parts(step) for step in later] == [parts(step) for step in iterator]


def test_datasets_of_replicas_are_restored_each():
    distributed = DistributedDataset.of_replicas([Dataset.range(9).shuffle(9).batch(n) for n in (1, 2)])
    iterator, later = iter(distributed), iter(distributed)
    next(iterator)
    later.set_state(iterator.get_state())
    assert [parts(step) for step in later] == [parts(step) for step in iterator]


def test_a_state_behind_the_end_has_nothing_to_come():
    for policy in (AutoShardPolicy.DATA, AutoShardPolicy.OFF):
        distributed = datasets(policy, 7, 4, None, 1)
        iterator, later = iter(distributed), iter(distributed)
        assert len(list(iterator)) == 2
        later.set_state(iterator.get_state())
        assert list(later) == []


@pytest.mark.parametrize(
    "other",
    [
        DistributedDataset(Dataset.range(8).batch(2), 2),
        DistributedDataset(Dataset.range(8).batch(4), 2, rebatch=False),
        DistributedDataset(Dataset.range(8).batch(2), 2, num_workers=2),
        DistributedDataset(with_policy(Dataset.range(8).batch(4), AutoShardPolicy.OFF), 2, num_workers=2),
        DistributedDataset(with_policy(Dataset.range(8).batch(4), AutoShardPolicy.OFF), 2),
    ],
)
def test_the_state_of_another_distribution_is_refused(other):
    iterator = iter(DistributedDataset(Dataset.range(8).batch(4), 2))
    with pytest.raises(FailedPreconditionError, match=r"saved: .*\n  here: "):
        iterator.set_state(iter(other).get_state())


@pytest.mark.parametrize("uneven", [None, "keep"])
@given(saved=st.integers(1, 5), restored=st.integers(1, 5), taken=st.integers(0, 6))
def test_where_each_step_is_a_global_batch_another_number_of_replicas_goes_on(uneven, saved, restored, taken):
    def distribute(num_replicas):
        dataset = Dataset.range(23).shuffle(23).map(lambda x: x, num_parallel_calls=2).batch(5).prefetch(2)
        return DistributedDataset(dataset, num_replicas, uneven=uneven)

    with iter(distribute(saved)) as iterator, iter(distribute(restored)) as later:
        for _ in range(taken):
            next(iterator, None)
        later.set_state(through_a_file(iterator.get_state()))
        whole = [[[row for part in parts(step) for row in part] for step in rest] for rest in (iterator, later)]
    assert whole[0] == whole[1]


def test_states_of_workers_are_told_apart():
    dataset = with_policy(Dataset.range(8).batch(4), AutoShardPolicy.OFF)
    first, second = (DistributedDataset(dataset, 1, num_workers=2, worker_index=index) for index in (0, 1))
    with pytest.raises(FailedPreconditionError):
        iter(second).set_state(iter(first).get_state())


def test_elements_that_are_too_few_for_a_step_are_lost_by_next_and_given_as_an_optional():
    dataset = Dataset.range(5).batch(1, drop_remainder=True)
    distributed = DistributedDataset(dataset, 2, rebatch=False)
    assert len(list(distributed)) == 2
    iterator = iter(distributed)
    found = [iterator.get_next_as_optional() for _ in range(4)]
    assert [answer.has_value() for answer in found] == [True, True, True, False]
    assert parts(found[2].get_value()) == [[4], []]
    assert distributed.reduce(0, lambda count, _: count + 1) == 3


def test_a_step_that_is_incomplete_of_known_sizes_ends_get_next():
    iterator = iter(DistributedDataset(Dataset.range(3).batch(1, drop_remainder=True), 2, rebatch=False))
    iterator.get_next()
    with pytest.raises(OutOfRangeError):
        iterator.get_next()


@pytest.mark.slow
@settings(max_examples=100)
@given(
    workers=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    replicas=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    sizes=st.tuples(st.integers(0, 60), st.integers(1, 9)),
    taken=st.integers(0, 12),
    has_prefetch=st.booleans(),
)
def test_another_number_of_workers_reads_every_row_once(workers, replicas, sizes, taken, has_prefetch):
    (saved, restored), (size, batch) = workers, sizes

    def iterate(num_replicas, **place):
        dataset = Dataset.range(size).shuffle(20, seed=3).repeat(2).map(lambda x: x, num_parallel_calls=2).batch(batch)
        dataset = with_policy(dataset.prefetch(2) if has_prefetch else dataset, AutoShardPolicy.DATA)
        return iter(DistributedDataset(dataset, num_replicas, **place))

    def iterators(num_workers, num_replicas):
        return [iterate(num_replicas, num_workers=num_workers, worker_index=index) for index in range(num_workers)]

    def rows(iterators, num_steps):
        steps = [next(iterator, None) for _ in range(num_steps) for iterator in iterators]
        return [row for step in steps if step is not None for part in parts(step) for row in part]

    before = iterators(saved, replicas[0])
    read = rows(before, taken)
    states = [through_a_file(iterator.get_state()) for iterator in before]
    after = iterators(restored, replicas[1])
    for index, iterator in enumerate(after):
        iterator.set_state(states[index] if index < saved else states[0])
    # A second save at the same place, and back.
    again = iterators(saved, replicas[0])
    for index, iterator in enumerate(again):
        iterator.set_state(after[index].get_state() if index < restored else after[0].get_state())
    assert sorted(read + rows(after, 200)) == sorted(2 * list(range(size)))
    assert sorted(read + rows(again, 200)) == sorted(2 * list(range(size)))
    for iterator in (*before, *after, *again):
        iterator.close()
