"""Datasets as a whole: chains of operations against the same on lists."""

from __future__ import annotations

import itertools
import random
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, TensorSpec
from ringlet.data.graph.iterable import iterable_source


def plain(element):
    """An element as Python's numbers and lists."""
    return element.tolist() if isinstance(element, (np.ndarray, np.generic)) else element


def batched(elements, size, drop_remainder):
    batches = [elements[i : i + size] for i in range(0, len(elements), size)]
    return [b for b in batches if len(b) == size] if drop_remainder else batches


# Name, arguments, and what the operation does to a list of elements.
OPERATIONS = st.one_of(
    st.tuples(st.just("take"), st.integers(-1, 30)),
    st.tuples(st.just("repeat"), st.integers(0, 3)),
    st.tuples(st.just("prefetch"), st.integers(-1, 3)),
)
ON_LISTS = {
    "take": lambda elements, count: elements if count < 0 else elements[:count],
    "repeat": lambda elements, count: elements * count,
    "prefetch": lambda elements, _: elements,
}


@given(
    size=st.integers(0, 40),
    operations=st.lists(OPERATIONS, max_size=4),
    batch=st.tuples(st.integers(1, 17), st.booleans()),
    is_mapped=st.booleans(),
)
def test_a_chain_of_operations_does_to_elements_what_it_does_to_a_list(size, operations, batch, is_mapped):
    dataset, expected = Dataset.range(size), list(range(size))
    if is_mapped:
        dataset, expected = dataset.map(lambda x: 2 * x), [2 * x for x in expected]
    for name, argument in operations:
        dataset, expected = getattr(dataset, name)(argument), ON_LISTS[name](expected, argument)
    assert [plain(x) for x in dataset] == expected
    assert dataset.cardinality() == len(dataset) == len(expected)
    dataset, expected = dataset.batch(*batch), batched(expected, *batch)
    assert [plain(x) for x in dataset] == expected
    assert len(dataset) == len(expected)


@given(
    size=st.integers(0, 60),
    buffers=st.lists(st.integers(1, 70), max_size=2),
    rounds=st.integers(1, 3),
    count=st.integers(0, 100),
    seed=st.integers(),
)
def test_rows_and_elements_come_in_one_order_whether_they_are_fused_or_not(size, buffers, rounds, count, seed):
    def piped(dataset):
        for buffer_size in buffers:
            dataset = dataset.shuffle(buffer_size, seed=seed)
        return dataset.repeat(rounds).shuffle(5, seed=seed).take(count).batch(3)

    fused, plain_elements = piped(Dataset.range(size)), piped(Dataset.range(size).map(lambda x: x))
    for _ in range(2):
        assert [plain(x) for x in fused] == [plain(x) for x in plain_elements]


@given(sizes=st.lists(st.integers(0, 3), min_size=1, max_size=3), batch_size=st.integers(1, 5))
def test_a_chain_over_structures_keeps_components_together(sizes, batch_size):
    arrays = {"a": np.arange(12), "b": (np.arange(12) * 10, np.arange(24).reshape(12, 2))}
    dataset = Dataset.from_tensor_slices(arrays).shuffle(12).repeat(2).batch(batch_size)
    for element in dataset:
        np.testing.assert_array_equal(element["b"][0], element["a"] * 10)
        np.testing.assert_array_equal(element["b"][1][:, 0], element["a"] * 2)


def test_an_operation_leaves_the_dataset_before_it_as_it_was():
    first = Dataset.range(4)
    second = first.batch(2)
    first.shuffle(4).repeat()
    assert [plain(x) for x in first] == [0, 1, 2, 3]
    assert [plain(x) for x in second] == [[0, 1], [2, 3]]


def test_a_dataset_can_be_gone_through_many_times_at_once():
    dataset = Dataset.range(3).map(lambda x: x).batch(2)
    assert [[plain(x) for x in pair] for pair in zip(dataset, dataset, strict=True)] == [[[0, 1], [0, 1]], [[2], [2]]]


@pytest.mark.parametrize(
    ("dataset", "cardinality"),
    [
        # dataset, cardinality
        (Dataset.range(10), 10),
        (Dataset.range(10).batch(4), 3),
        (Dataset.range(10).batch(4, drop_remainder=True), 2),
        (Dataset.range(10).repeat(), INFINITE_CARDINALITY),
        (Dataset.range(10).repeat().batch(3).shuffle(2).prefetch(1), INFINITE_CARDINALITY),
        (Dataset.range(10).repeat().take(7), 7),
        (Dataset.range(10).repeat().take(-1), INFINITE_CARDINALITY),
        (Dataset.range(10).repeat().repeat(0), 0),
        (Dataset.range(10).repeat().repeat(2), INFINITE_CARDINALITY),
        (Dataset.range(0).repeat(), 0),
        (Dataset.range(3).take(5), 3),
        (Dataset(iterable_source(iter(()))), UNKNOWN_CARDINALITY),
        (Dataset(iterable_source(iter(()))).batch(2).take(3).map(len).repeat(3), UNKNOWN_CARDINALITY),
        (Dataset(iterable_source(iter(()))).repeat(), INFINITE_CARDINALITY),
    ],
)
def test_the_cardinality_is_known_without_reading(dataset, cardinality):
    assert dataset.cardinality() == cardinality


def test_a_length_that_is_infinite_or_unknown_is_a_type_error():
    with pytest.raises(TypeError, match="infinite"):
        len(Dataset.range(3).repeat())
    with pytest.raises(TypeError, match="unknown"):
        len(Dataset(iterable_source(iter(()))))


def test_an_empty_dataset_is_true_all_the_same():
    assert Dataset.range(0)


def test_a_list_of_an_infinite_dataset_can_be_begun():
    assert [plain(x) for x in itertools.islice(Dataset.range(2).repeat(), 5)] == [0, 1, 0, 1, 0]


def test_elements_are_read_only_whatever_made_them():
    array = np.zeros((6, 2))
    source = Dataset.from_tensor_slices(array)
    for dataset in (
        source,
        source.batch(2),
        source.shuffle(6).batch(2),
        source.map(lambda x: x.copy()),
        source.map(lambda x: x).batch(2),
        source.batch(2).map(lambda x: x + 1).prefetch(1),
        Dataset.range(5).batch(2),
    ):
        for element in dataset:
            assert not element.flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                element += 1  # noqa: PLW2901


def test_batches_of_slices_in_their_order_share_the_memory_of_the_array():
    array = np.arange(20).reshape(10, 2)
    for batch in Dataset.from_tensor_slices(array).take(9).prefetch(2).batch(4):
        assert np.shares_memory(batch, array)


def test_batches_across_the_end_of_a_round_are_the_only_copies():
    array = np.arange(10)
    shared = [np.shares_memory(batch, array) for batch in Dataset.from_tensor_slices(array).repeat(2).batch(4)]
    assert shared == [True, True, False, True, True]


def test_iterating_keeps_no_element_alive_that_was_given_out():
    alive = []

    def watched(x):
        array = np.full(3, x)
        alive.append(weakref.ref(array))
        return array

    for dataset in (
        Dataset.range(50).map(watched),
        Dataset.range(50).map(watched).map(lambda x: x).repeat(2),
        Dataset.range(50).map(watched).batch(5),
        Dataset.range(50).map(watched).take(30),
    ):
        alive.clear()
        for _ in dataset:
            assert sum(ref() is not None for ref in alive) <= 1


def test_a_shuffle_keeps_alive_no_more_than_its_buffer_and_the_element_it_gives():
    alive = []

    def watched(x):
        array = np.full(3, x)
        alive.append(weakref.ref(array))
        return array

    for _ in Dataset.range(50).map(watched).shuffle(7):
        assert sum(ref() is not None for ref in alive) <= 8


def test_gathered_batches_die_with_their_last_reference():
    array = np.arange(100)
    previous = None
    for batch in Dataset.from_tensor_slices(array).shuffle(100).batch(10):
        assert previous is None or previous() is None
        previous = weakref.ref(batch)
        del batch


def test_the_spec_of_a_chain_is_known_before_it_runs():
    dataset = Dataset.from_tensor_slices({"x": np.zeros((4, 3), np.float32), "y": ["a"] * 4})
    assert dataset.element_spec == {"x": TensorSpec([3], np.float32), "y": TensorSpec([], "U")}
    assert dataset.shuffle(2).repeat().batch(2).element_spec["x"] == TensorSpec([None, 3], np.float32)
    assert dataset.batch(2, True).prefetch(1).take(1).element_spec["x"] == TensorSpec([2, 3], np.float32)


def test_elements_follow_the_spec_of_their_dataset():
    rng = random.Random(5)
    functions = [lambda x: x, lambda x: (x, x * 2.5), lambda x: {"a": x, "b": "text"}, lambda x: np.stack([x, x])]
    for _ in range(30):
        dataset = Dataset.range(17)
        for is_last in (False, False, True):
            if isinstance(dataset.element_spec, TensorSpec) and rng.random() < 0.5:
                dataset = dataset.map(rng.choice(functions))
            dataset = dataset.batch(rng.randint(1, 3), drop_remainder=not is_last or rng.random() < 0.5)
        specs = dataset.element_spec
        for element in dataset:
            for spec, leaf in zip(leaves(specs), leaves(element), strict=True):
                assert spec.is_compatible_with(leaf)


def leaves(nest):
    if isinstance(nest, tuple):
        return [leaf for child in nest for leaf in leaves(child)]
    if isinstance(nest, dict):
        return [leaf for key in sorted(nest) for leaf in leaves(nest[key])]
    return [nest]


def test_a_dataset_is_not_made_of_anything_but_a_node():
    with pytest.raises(TypeError, match="from_tensor_slices"):
        Dataset([1, 2])


def test_the_text_of_a_dataset_shows_its_chain_and_calls_no_function():
    dataset = Dataset.range(3).shuffle(2)
    assert repr(dataset.batch(2)) == (
        "<Dataset TableSource -> Shuffle -> Batch element_spec=TensorSpec(shape=(None,), dtype=int64)>"
    )
    assert repr(dataset.map(lambda _: pytest.fail("called"))) == "<Dataset TableSource -> Shuffle -> Map>"


def test_a_subclass_stays_one_through_operations():
    class Mine(Dataset):
        __slots__ = ()

    assert type(Mine.range(3).batch(2).map(len)) is Mine
