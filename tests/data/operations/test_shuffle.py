"""Elements in random order."""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import UNKNOWN_CARDINALITY, Dataset
from ringlet.data.operations.shuffle import BLOCK, refill_slots
from ringlet.errors import InvalidArgumentError

FUSED_OR_NOT = pytest.mark.parametrize("operation", [lambda d: d, lambda d: d.map(lambda x: x)])


def order(dataset):
    return [int(x) for x in dataset]


@given(size=st.integers(0, 60), buffer_size=st.integers(1, 70), seed=st.integers(0, 9), is_mapped=st.booleans())
def test_every_element_comes_once_and_at_most_a_buffer_less_one_early(size, buffer_size, seed, is_mapped):
    dataset = Dataset.range(size).map(lambda x: x) if is_mapped else Dataset.range(size)
    found = order(dataset.shuffle(buffer_size, seed=seed))
    assert sorted(found) == list(range(size))
    assert all(position >= element - (buffer_size - 1) for position, element in enumerate(found))


@pytest.mark.parametrize("buffer_size", [2, 1000, BLOCK + 1, 70_000])
def test_a_dataset_larger_than_a_block_keeps_these_rules(buffer_size):
    size = 3 * BLOCK + 5
    (found,) = Dataset.range(size).shuffle(buffer_size, seed=0).batch(size)
    np.testing.assert_array_equal(np.sort(found), np.arange(size))
    assert (np.arange(size) >= found - (buffer_size - 1)).all()


def test_rows_and_elements_of_many_blocks_come_in_one_order():
    size = 2 * BLOCK + 7
    fused = order(Dataset.range(size).shuffle(100, seed=0))
    assert fused == order(Dataset.range(size).map(lambda x: x).shuffle(100, seed=0))


@given(
    slots=st.lists(st.integers(0, 6), max_size=30),
    wide=st.booleans(),
)
def test_refilling_slots_in_a_block_equals_refilling_them_one_by_one(slots, wide):
    buffer = np.arange(100, 100 + (70_000 if wide else 7))
    expected, out = buffer.copy(), []
    for number, slot in enumerate(slots):
        out.append(expected[slot])
        expected[slot] = number
    found = refill_slots(buffer, np.array(slots, np.int64), np.arange(len(slots)))
    assert found.tolist() == out
    np.testing.assert_array_equal(buffer, expected)


@FUSED_OR_NOT
@pytest.mark.parametrize("buffer_size", [3, 40])
def test_a_seed_gives_the_same_orders_in_every_new_dataset(operation, buffer_size):
    first, second = (operation(Dataset.range(40)).shuffle(buffer_size, seed=7) for _ in range(2))
    assert [order(first) for _ in range(3)] == [order(second) for _ in range(3)]


def test_seeds_give_different_orders():
    assert len({tuple(order(Dataset.range(40).shuffle(40, seed=seed))) for seed in (-1, 0, 1, 2**70)}) == 4


def test_without_a_seed_datasets_differ():
    assert order(Dataset.range(40).shuffle(40)) != order(Dataset.range(40).shuffle(40))


@FUSED_OR_NOT
@pytest.mark.parametrize("seed", [None, 3])
def test_each_iteration_and_each_round_has_its_own_order(operation, seed):
    dataset = operation(Dataset.range(40)).shuffle(40, seed=seed)
    assert order(dataset) != order(dataset)
    rounds = order(dataset.repeat(2))
    assert rounds[:40] != rounds[40:]
    assert sorted(rounds[:40]) == sorted(rounds[40:]) == list(range(40))


@FUSED_OR_NOT
@pytest.mark.parametrize("seed", [None, 3])
def test_one_order_is_kept_when_that_is_asked_for(operation, seed):
    dataset = operation(Dataset.range(40)).shuffle(40, seed=seed, reshuffle_each_iteration=False)
    rounds = order(dataset.repeat(2))
    assert order(dataset) == order(dataset) == rounds[:40] == rounds[40:]


def test_how_far_an_iteration_was_read_does_not_change_the_next_one():
    def second_order(read):
        dataset = Dataset.range(10).map(lambda x: x).shuffle(10, seed=5).repeat().prefetch(50)
        with iter(dataset) as iterator:
            for _ in range(read):
                next(iterator)
        return order(dataset.take(20))

    assert second_order(1) == second_order(35)


def test_iterations_that_overlap_have_orders_of_their_own():
    dataset = Dataset.range(30).shuffle(30, seed=2)
    pairs = list(zip(dataset, dataset, strict=True))
    assert [int(x) for x, _ in pairs] == order(Dataset.range(30).shuffle(30, seed=2))
    assert [x for x, _ in pairs] != [x for _, x in pairs]


def test_every_order_is_as_likely_as_any_other_when_the_buffer_holds_all():
    dataset = Dataset.range(3).shuffle(3, seed=0)
    counts = Counter(tuple(order(dataset)) for _ in range(1200))
    assert len(counts) == 6
    assert all(140 < count < 260 for count in counts.values())


def test_a_buffer_of_one_keeps_the_order_and_copies_nothing():
    array = np.arange(10)
    assert all(np.shares_memory(x, array) for x in Dataset.from_tensor_slices(array).shuffle(1).batch(3))
    assert order(Dataset.range(5).map(lambda x: x).shuffle(1)) == [0, 1, 2, 3, 4]


@FUSED_OR_NOT
def test_an_unknown_cardinality_as_buffer_shuffles_all(operation):
    dataset = operation(Dataset.range(2000)).shuffle(UNKNOWN_CARDINALITY, seed=0)
    found = order(dataset)
    assert sorted(found) == list(range(2000))
    assert max(element - position for position, element in enumerate(found)) > 1000


def test_a_buffer_without_end_is_refused():
    with pytest.raises(InvalidArgumentError, match="dataset is infinite"):
        Dataset.range(3).repeat().shuffle(UNKNOWN_CARDINALITY)


def test_a_buffer_of_no_elements_says_what_to_do_with_an_empty_dataset():
    with pytest.raises(InvalidArgumentError, match="size of an empty dataset"):
        Dataset.range(0).shuffle(Dataset.range(0).cardinality())


def test_a_seed_must_be_an_integer():
    with pytest.raises(TypeError, match="seed must be an integer"):
        Dataset.range(3).shuffle(3, seed="x")


def test_a_stream_without_end_is_shuffled_as_it_flows():
    found = order(Dataset.range(4).repeat().shuffle(8, seed=0).take(100))
    assert len(found) == 100
    assert set(found) == {0, 1, 2, 3}


def test_threads_that_iterate_at_once_each_get_every_element():
    dataset, found = Dataset.range(500).shuffle(500, seed=1), []
    threads = [threading.Thread(target=lambda: found.append(order(dataset))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sorted(one) for one in found] == [list(range(500))] * 4
    assert len(set(map(tuple, found))) == 4
