"""Classes in other proportions."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.data import Dataset
from ringlet.data.operations.rejection_resample import acceptance
from ringlet.errors import InvalidArgumentError
from tests.data.state_cases import through_a_file

LABELS = np.random.default_rng(0).choice(3, 6000, p=[0.7, 0.2, 0.1])


def labels(dataset):
    return np.array([int(label) for label, _ in dataset])


def shares(dataset, count=3):
    found = labels(dataset)
    return np.bincount(found, minlength=count) / len(found)


@pytest.mark.parametrize("initial", [None, [0.7, 0.2, 0.1]], ids=["estimated", "given"])
@pytest.mark.parametrize("target", [[0.4, 0.3, 0.3], [0.0, 0.5, 0.5], [0.1, 0.2, 0.7]])
def test_classes_have_the_proportions_that_are_wanted(target, initial):
    dataset = Dataset.from_tensor_slices(LABELS).rejection_resample(lambda x: x, target, initial, seed=5)
    np.testing.assert_allclose(shares(dataset), target, atol=0.06)


def test_every_element_comes_where_the_proportions_are_as_wanted():
    dataset = Dataset.from_tensor_slices([0, 1, 0, 1]).rejection_resample(lambda x: x, [0.5, 0.5], [0.5, 0.5])
    assert [tuple(map(int, pair)) for pair in dataset] == [(0, 0), (1, 1), (0, 0), (1, 1)]


# initial, target, accepted, from the whole input: computed by TensorFlow 2.21
ACCEPTANCE = [
    ([0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 0.5, 0.5], [0, 0, 1, 1], 0),
    ([0.9, 0.1], [0.5, 0.5], [0, 1], 0.5555556),
    ([0.2, 0.3, 0.5], [0.5, 0.3, 0.2], [1, 0.28571433, 0], 0.4),
]


@pytest.mark.parametrize(("initial", "target", "accepted", "original"), ACCEPTANCE)
def test_elements_are_accepted_with_these_probabilities(initial, target, accepted, original):
    found, share = acceptance(np.array(initial, np.float32), np.array(target, np.float32))
    np.testing.assert_allclose(found, accepted, rtol=1e-5)
    np.testing.assert_allclose(share, original, rtol=1e-6)


def test_elements_that_are_nests_stay_as_they_are():
    pairs = Dataset.from_tensor_slices(({"x": [1.0, 2.0]}, [1, 1]))
    ((label, (features, y)), *_) = pairs.rejection_resample(lambda _x, y: y, [0.0, 1.0], [0.0, 1.0])
    assert (label, features, y) == (1, {"x": 1.0}, 1)
    ((_, element), *_) = pairs.map(lambda x, y: {**x, "y": y}).rejection_resample(lambda e: e["y"], [0, 1], [0.5, 0.5])
    assert element == {"x": 1.0, "y": 1}


def test_a_seed_gives_the_same_elements_again():
    def made(seed):
        return labels(
            Dataset.from_tensor_slices(LABELS[:300]).rejection_resample(lambda x: x, [0.3] * 2 + [0.4], None, seed)
        )

    np.testing.assert_array_equal(made(4), made(4))
    assert made(4).tolist() != made(5).tolist()


def test_no_elements_are_no_elements():
    empty = Dataset.from_tensor_slices(np.zeros(0, np.int64))
    assert list(empty.rejection_resample(lambda x: x, [0.5, 0.5])) == []
    assert list(empty.rejection_resample(lambda x: x, [0.5, 0.5], [0.1, 0.9])) == []


@pytest.mark.parametrize("initial", [None, [0.7, 0.2, 0.1]])
def test_it_goes_on_from_a_state(initial):
    dataset = Dataset.from_tensor_slices(LABELS[:300]).rejection_resample(lambda x: x, [0.2, 0.4, 0.4], initial, 3)
    iterator, later = iter(dataset), iter(dataset)
    for _ in range(50):
        next(iterator)
    later.set_state(through_a_file(iterator.get_state()))
    assert list(later) == list(iterator)


@pytest.mark.parametrize("wrong", [[0.5, 0.6], [-0.5, 1.5], [[0.5, 0.5]], [], [np.nan, 1.0], ["a", "b"]])
def test_shares_are_one_for_each_class_and_1_together(wrong):
    dataset = Dataset.range(3)
    with pytest.raises(InvalidArgumentError, match="target_dist must hold one probability for each class"):
        dataset.rejection_resample(lambda _: 0, wrong)
    with pytest.raises(InvalidArgumentError, match="initial_dist must hold one probability for each class"):
        dataset.rejection_resample(lambda _: 0, [0.5, 0.5], wrong)


def test_both_distributions_have_the_same_classes():
    with pytest.raises(
        InvalidArgumentError,
        match="target_dist and initial_dist must have one probability for each class, got 2 and 1 probabilities",
    ):
        Dataset.range(3).rejection_resample(lambda _: 0, [0.5, 0.5], [1.0])


@pytest.mark.parametrize("wrong", [2, -1])
def test_a_class_without_a_share_is_refused(wrong):
    with pytest.raises(InvalidArgumentError, match="the classes 0 to 1"):
        list(Dataset.range(3).rejection_resample(lambda _: wrong, [0.5, 0.5], [0.1, 0.9]))


@pytest.mark.parametrize("wrong", [0.5, "a", [0, 1]])
def test_a_class_is_an_integer(wrong):
    with pytest.raises(TypeError, match="one integer"):
        list(Dataset.range(3).rejection_resample(lambda _: wrong, [0.5, 0.5], [0.1, 0.9]))


def test_the_function_must_be_one():
    with pytest.raises(TypeError, match="rejection_resample requires a function"):
        Dataset.range(3).rejection_resample(3, [1.0])


def test_tensors_come_as_tensors():
    dataset = tf.data.Dataset.from_tensor_slices(LABELS[:200].astype(np.int32))
    dataset = dataset.rejection_resample(lambda x: x, tf.constant([0.2, 0.4, 0.4]), seed=1)
    label, x = next(iter(dataset))
    assert label.dtype == x.dtype == tf.int32
    assert label == x
