"""Datasets side by side."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, TensorSpec

THREE, FOUR = Dataset.range(3), Dataset.range(10, 14)
ENDLESS, UNKNOWN = THREE.repeat(), THREE.filter(lambda x: True)


def numbers(dataset):
    return [tuple(map(int, element)) for element in dataset]


def test_datasets_one_after_another_and_in_a_tuple_are_the_same():
    expected = [(0, 10), (1, 11), (2, 12)]
    assert numbers(Dataset.zip(THREE, FOUR)) == expected
    assert numbers(Dataset.zip((THREE, FOUR))) == expected
    assert numbers(Dataset.zip(datasets=(THREE, FOUR))) == expected


def test_one_dataset_is_the_structure_itself():
    assert [int(x) for x in Dataset.zip(THREE)] == [0, 1, 2]
    assert numbers(Dataset.zip((THREE,))) == [(0,), (1,), (2,)]


@pytest.mark.parametrize("kind", [lambda d: d, lambda d: d.map(lambda x: x)])
def test_nests_of_datasets_give_nests_of_elements(kind):
    dataset = Dataset.zip({"b": kind(THREE), "a": (kind(FOUR), Dataset.zip(kind(THREE), kind(THREE)))})
    assert list(dataset)[2] == {"b": 2, "a": (12, (2, 2))}
    assert dataset.element_spec["a"] == (TensorSpec([], np.int64),) * 1 + ((TensorSpec([], np.int64),) * 2,)


@pytest.mark.parametrize(
    ("other", "cardinality"),
    [(FOUR, 3), (Dataset.range(1), 1), (ENDLESS, 3), (UNKNOWN, UNKNOWN_CARDINALITY)],
)
def test_the_shortest_ends_it(other, cardinality):
    dataset = Dataset.zip(THREE, other)
    assert dataset.cardinality() == cardinality
    assert len(list(dataset)) == min(3, 3 if cardinality < 0 else cardinality)


def test_endless_datasets_are_endless_together():
    assert Dataset.zip(ENDLESS, ENDLESS).cardinality() == INFINITE_CARDINALITY


def test_rows_of_arrays_stay_rows_and_batches_are_views():
    images, labels = np.arange(12.0).reshape(4, 3), np.arange(4)
    dataset = Dataset.zip(Dataset.from_tensor_slices(images), Dataset.from_tensor_slices(labels).take(3))
    for image, label in dataset.batch(2):
        assert np.shares_memory(image, images)
        assert np.shares_memory(label, labels)
    assert sorted(int(label) for _, label in dataset.shuffle(9)) == [0, 1, 2]
    assert all(image[0] == 3 * label for image, label in dataset.shuffle(9))


def test_a_shuffle_that_both_share_has_one_order():
    shuffled = Dataset.range(50).shuffle(50)
    assert all(a == b for a, b in Dataset.zip(shuffled, shuffled))
    assert all(b == 2 * a for a, b in Dataset.zip(shuffled, shuffled.map(lambda x: 2 * x)))


def test_an_exception_of_one_leaves_the_others_in_step():
    iterator = iter(Dataset.zip(THREE.map(lambda x: 6 // int(x - 1)), FOUR))
    assert next(iterator) == (-6, 10)
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    assert next(iterator) == (6, 12)


def test_all_are_closed_where_the_first_ends():
    closed = []

    class Source:
        def __iter__(self):
            try:
                yield from range(10)
            finally:
                closed.append(True)

    assert len(list(Dataset.zip(Dataset.from_iterable(Source()), THREE))) == 3
    assert closed == [True]


@pytest.mark.parametrize(
    ("arguments", "keywords", "words"),
    [
        ((), {}, "at least one"),
        (((),), {}, "at least one"),
        ((THREE,), {"datasets": FOUR}, "both"),
        (([THREE, FOUR],), {}, "tuple"),
        (([THREE], FOUR), {}, "tuple"),
        (((THREE, 5),), {}, "got 5"),
    ],
)
def test_anything_but_datasets_in_tuples_and_dictionaries_is_refused(arguments, keywords, words):
    with pytest.raises(TypeError, match=words):
        Dataset.zip(*arguments, **keywords)


def test_file_caches_that_end_together_are_all_complete(tmp_path):
    def shuffled(name):
        return Dataset.range(8).shuffle(8).cache(str(tmp_path / name))

    dataset = Dataset.zip(shuffled("a"), shuffled("b"), shuffled("c"))
    first = [tuple(map(int, x)) for x in dataset]
    assert [tuple(map(int, x)) for x in dataset] == first
