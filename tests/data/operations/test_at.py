"""Elements by their numbers."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import (
    Dataset,
    FixedLengthRecordDataset,
    Options,
    TextLineDataset,
    TFRecordDataset,
    assert_cardinality,
    at,
)
from ringlet.errors import FailedPreconditionError, OutOfRangeError

FIVE = Dataset.range(5)
DATASETS = [
    FIVE,
    Dataset.range(2, 20, 3),
    Dataset.from_tensors((1, None)),
    Dataset.from_tensor_slices(([1, 2], np.zeros((2, 3)))),
    Dataset.from_tensor_slices(np.zeros((0, 2))),
    Dataset.from_list([(1, "a"), (2, "b")]),
    FIVE.map(lambda x: x * 2),
    FIVE.map(lambda x: (x, None), num_parallel_calls=2),
    FIVE.batch(2),
    FIVE.batch(2, drop_remainder=True),
    FIVE.batch(2, num_parallel_calls=2),
    FIVE.map(lambda x: x).batch(2).map(lambda x: x + 1).concatenate(Dataset.range(3).batch(2)),
    FIVE.concatenate(Dataset.range(7, 9)),
    FIVE.skip(2),
    FIVE.skip(0),
    FIVE.skip(-1),
    FIVE.skip(10),
    FIVE.take(2),
    FIVE.take(-1),
    FIVE.take(0),
    Dataset.range(10).take(5).skip(2).take(2),
    Dataset.zip(FIVE, {"a": Dataset.range(3)}),
    FIVE.prefetch(2),
    FIVE.cache(),
    FIVE.filter(lambda x: x > 1).cache(),
    FIVE.shuffle(3).cache(),
    FIVE.map(lambda x: x).shuffle(3).cache().map(lambda x: x + 1),
    FIVE.repeat(2),
    FIVE.repeat(0),
    Dataset.range(0).repeat(),
    FIVE.shard(2, 1),
    FIVE.shard(7, 6),
    FIVE.enumerate(3),
    FIVE.with_options(Options()),
    FIVE.apply(assert_cardinality(5)),
]


def plain(value):
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return tuple(map(plain, value)) if isinstance(value, tuple) else getattr(value, "tolist", lambda: value)()


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_elements_are_those_of_an_iteration(dataset):
    elements = [plain(element) for element in dataset]
    assert [plain(at(dataset, number)) for number in range(len(elements))] == elements
    for number in (-1, len(elements)):
        with pytest.raises(OutOfRangeError, match=rf"range \[0, {len(elements)}\): {number}"):
            at(dataset, number)


@pytest.mark.parametrize("buffer_size", [2, 5])
def test_a_shuffle_has_one_order_of_all_elements(buffer_size):
    dataset = FIVE.shuffle(buffer_size, seed=1)
    order = [int(at(dataset, number)) for number in range(5)]
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert [int(at(dataset, number)) for number in range(5)] == order
    assert [int(at(FIVE.shuffle(5, seed=1), number)) for number in range(5)] == order
    assert [int(at(dataset.repeat(2), number)) for number in range(10)] == order * 2


def test_only_the_element_is_made_and_a_cache_makes_all_once():
    calls = []
    dataset = FIVE.map(lambda x: (calls.append(int(x)), x * 10)[1])
    assert at(dataset, 3) == 30
    assert calls == [3]
    calls.clear()
    cached = dataset.cache()
    assert [int(at(cached, number)) for number in (2, 2, 0, 3)] == [20, 20, 0, 30]
    assert calls == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "dataset",
    [
        FIVE.filter(lambda x: x > 1),
        FIVE.filter(lambda x: x > 1).map(lambda x: x),
        FIVE.flat_map(Dataset.range),
        FIVE.interleave(Dataset.range),
        FIVE.window(2),
        FIVE.scan(0, lambda total, x: (total + x, total)),
        FIVE.take_while(lambda x: x < 3),
        FIVE.unique(),
        FIVE.padded_batch(2),
        FIVE.batch(2).rebatch(3),
        FIVE.ignore_errors(),
        FIVE.cache("/nowhere/cache"),
        FIVE.group_by_window(lambda x: x % 2, lambda _, window: window.batch(2), window_size=2),
        Dataset.random(seed=1),
        Dataset.counter(),
        Dataset.choose_from_datasets([FIVE] * 2, Dataset.range(2)),
        Dataset.from_generator(lambda: iter([1, 2]), output_types=np.int64),
        TextLineDataset("/nowhere/a"),
        TFRecordDataset("/nowhere/a"),
        FixedLengthRecordDataset("/nowhere/a", 3),
    ],
)
def test_operations_in_their_order_only_say_so(dataset):
    with pytest.raises(NotImplementedError, match="random access is not implemented for"):
        at(dataset, 1)


@pytest.mark.parametrize(
    ("dataset", "kind"),
    [
        (FIVE.repeat(), "Repeat has infinite"),
        (FIVE.repeat().map(lambda x: x), "Repeat has infinite"),
        (FIVE.repeat().skip(2), "Skip has infinite"),
        (FIVE.repeat().batch(2), "Batch has infinite"),
        (FIVE.repeat().shuffle(2), "Shuffle has infinite"),
        (FIVE.repeat().cache(), "Cache has infinite"),
        (FIVE.map(lambda x: x).repeat().cache(), "Cache has infinite"),
        (Dataset.zip(FIVE.repeat(), FIVE.repeat()), "Zip has infinite"),
        (FIVE.filter(lambda x: x > 1).take(2), "Take has unknown"),
        (FIVE.batch(2).unbatch(), "Unbatch has unknown"),
        (FIVE.filter(lambda x: x > 1).concatenate(FIVE), "Concatenate has unknown"),
    ],
)
def test_the_number_of_elements_must_be_known(dataset, kind):
    with pytest.raises(FailedPreconditionError, match=f"{kind} cardinality"):
        at(dataset, 1)


def test_an_error_of_the_function_tells_the_number():
    with pytest.raises(ZeroDivisionError) as caught:
        at(FIVE.map(lambda x: 1 // int(x)), 0)
    assert "element 0" in caught.value.__notes__[0]


@pytest.mark.parametrize("index", [1.5, "a", None, np.array([1, 2])])
def test_the_index_is_an_integer(index):
    with pytest.raises(TypeError, match="must be an integer, got"):
        at(FIVE, index)


def test_the_dataset_is_a_dataset():
    with pytest.raises(TypeError, match="requires a Dataset, got 3"):
        at(3, 0)
    assert at(FIVE, np.int32(2)) == 2
