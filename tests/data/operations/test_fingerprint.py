"""Numbers that say which elements a dataset has."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.data import Dataset, Options

FACTOR = 3


def twice(x):
    return 2 * x


def by_factor(x):
    return FACTOR * x


def recursive(x):
    return x if x < 2 else recursive(x - 1)


def plus(n):
    return lambda x: x + n


MAKERS = [
    lambda: Dataset.range(3),
    lambda: Dataset.range(4),
    lambda: Dataset.range(1, 4),
    lambda: Dataset.from_tensor_slices([0, 1, 2]),
    lambda: Dataset.from_tensor_slices([0, 1, 3]),
    lambda: Dataset.from_tensor_slices(np.array([0, 1, 2], np.int32)),
    lambda: Dataset.from_tensor_slices({"a": [0, 1, 2], "b": None}),
    lambda: Dataset.from_tensors(("a", b"a")),
    lambda: Dataset.from_tensors(("a", "a")),
    lambda: Dataset.from_tensors(Dataset.range(3)),
    lambda: Dataset.from_list([np.zeros(1), np.zeros(2)]),
    lambda: Dataset.range(3).batch(2),
    lambda: Dataset.range(3).batch(2, drop_remainder=True),
    lambda: Dataset.range(3).map(twice),
    lambda: Dataset.range(3).map(by_factor),
    lambda: Dataset.range(3).map(recursive),
    lambda: Dataset.range(3).map(plus(1)),
    lambda: Dataset.range(3).map(plus(2)),
    lambda: Dataset.range(3).map(np.negative),
    lambda: Dataset.range(3).map(lambda x: [y + 1 for y in [x]]),
    lambda: Dataset.range(3).map(lambda x: [y + 2 for y in [x]]),
    lambda: Dataset.range(3).shuffle(3, seed=1),
    lambda: Dataset.range(3).shuffle(3, seed=2),
    lambda: Dataset.range(3).window(2),
    lambda: Dataset.range(3).with_options(Options()),
    lambda: Dataset.zip(Dataset.range(3), Dataset.range(4)),
    lambda: Dataset.zip({"a": Dataset.range(3), "b": Dataset.range(4)}),
    lambda: Dataset.range(3).concatenate(Dataset.range(4)),
    lambda: Dataset.range(3).cache().repeat(2),
]


def test_equal_datasets_have_equal_numbers_and_others_have_others():
    numbers = [make().fingerprint() for make in MAKERS]
    assert [make().fingerprint() for make in MAKERS] == numbers
    assert len(set(numbers)) == len(numbers)
    assert {type(number) for number in numbers} == {np.uint64}


def test_iterating_changes_nothing():
    dataset = Dataset.range(4).map(twice, num_parallel_calls=2).shuffle(4, seed=1).cache()
    before = dataset.fingerprint()
    assert len(list(dataset)) == 4
    assert dataset.element_spec is not None
    assert dataset.fingerprint() == before


def test_a_global_that_changes_changes_the_number(monkeypatch):
    before = Dataset.range(3).map(by_factor).fingerprint()
    monkeypatch.setitem(globals(), "FACTOR", 4)
    assert Dataset.range(3).map(by_factor).fingerprint() != before


def test_what_is_not_known_makes_the_number_that_of_one_dataset():
    class Doubler:
        def __call__(self, x):
            return 2 * x

    doubler = Doubler()
    one, other = [Dataset.range(3).map(doubler) for _ in range(2)]
    assert one.fingerprint() == one.fingerprint()
    assert one.fingerprint() != other.fingerprint()


@pytest.mark.parametrize("number", [1, 2])
def test_the_compat_spelling_gives_a_tensor(number):
    def make():
        return tf.data.Dataset.range(3).map(lambda x: x + number)

    assert make().fingerprint().dtype == tf.uint64
    assert make().fingerprint().numpy() == make().fingerprint().numpy()
