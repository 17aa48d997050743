"""Batches cut and joined to other sizes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import UNKNOWN_CARDINALITY, Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError
from tests.data.state_cases import through_a_file

batches_of_rows = st.lists(st.integers(0, 9), min_size=1, max_size=8)
new_sizes = st.lists(st.integers(0, 7), min_size=1, max_size=4).filter(any)


def ragged(sizes):
    """Batches of given sizes, whose rows count on."""
    stops = np.cumsum(sizes)
    return Dataset.from_iterable([np.arange(stop - size, stop) for size, stop in zip(sizes, stops, strict=True)])


def expected(rows, sizes, drop):
    """Batches by the rule, from a list of all rows. Behind a short batch comes none, not even one of size zero."""
    found, at = [], 0
    turns = itertools.cycle(sizes)
    while (size := next(turns)) == 0 or at + size <= len(rows):
        found.append(rows[at : at + size])
        at += size
    return found if drop or at == len(rows) else [*found, rows[at:]]


@given(given=batches_of_rows, sizes=new_sizes, drop=st.booleans())
def test_the_rows_are_counted_off_in_batches_of_the_sizes_in_turn(given, sizes, drop):
    found = [batch.tolist() for batch in ragged(given).rebatch(sizes, drop)]
    assert found == expected(list(range(sum(given))), sizes, drop)


@pytest.mark.parametrize(
    ("sizes", "drop", "shape"),
    [
        # sizes, drop_remainder, shape of the batches of a dataset whose batches have 8 rows
        (2, False, (2,)),
        ([4, 4], False, (4,)),
        (3, False, (None,)),
        (3, True, (3,)),
        ([2, 1], False, (None,)),
        ([2, 1], True, (None,)),
    ],
)
def test_the_spec_knows_a_size_that_all_batches_have(sizes, drop, shape):
    dataset = Dataset.range(16).batch(8, drop_remainder=True).rebatch(sizes, drop)
    assert dataset.element_spec == TensorSpec(shape, np.int64)
    assert dataset.cardinality() == UNKNOWN_CARDINALITY


def test_batches_within_a_batch_are_views_and_all_are_read_only():
    rows = np.arange(8)
    first, second, third = Dataset.from_tensor_slices(rows).batch(4).rebatch(3)
    assert np.shares_memory(first, rows)
    assert not np.shares_memory(second, rows)
    assert np.shares_memory(third, rows)
    assert not any(batch.flags.writeable for batch in (first, second, third))


def test_every_array_of_a_structure_is_cut_alike():
    dataset = Dataset.range(5).map(lambda x: {"a": x, "b": (np.full(2, x),)}).batch(3).rebatch([1, 4])
    assert [(x["a"].tolist(), x["b"][0].shape) for x in dataset] == [([0], (1, 2)), ([1, 2, 3, 4], (4, 2))]


def test_a_batch_of_size_zero_has_no_entries_along_unknown_dimensions():
    dataset = Dataset.from_generator(
        lambda: iter([np.zeros((1, 5))]), output_signature=TensorSpec([None, None], np.float64)
    )
    assert [batch.shape for batch in dataset.rebatch([1, 0])] == [(1, 5), (0, 0)]


def test_batches_without_rows_are_like_those_that_can_be_read_only_once():
    dataset = Dataset.from_iterable(iter([np.ones((2, 3), np.int8)])).rebatch([0, 2])
    assert [(batch.shape, batch.dtype) for batch in dataset] == [((0, 3), np.int8), ((2, 3), np.int8)]
    assert list(Dataset.from_iterable([]).rebatch([0, 2])) == []


@pytest.mark.parametrize("sizes", [0, [0, 0], -1, [2, -1], []])
def test_sizes_that_never_end_or_are_negative_are_refused(sizes):
    with pytest.raises(
        InvalidArgumentError, match="batch_size must be zero or more, and at least one size must be positive"
    ):
        Dataset.range(4).batch(2).rebatch(sizes)


def test_sizes_are_integers_in_a_vector():
    with pytest.raises(TypeError, match="must be an integer"):
        Dataset.range(4).batch(2).rebatch(2.5)
    with pytest.raises(InvalidArgumentError, match="a scalar or a vector"):
        Dataset.range(4).batch(2).rebatch([[1]])


def test_elements_without_rows_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"is a scalar.*dataset\.batch"):
        Dataset.range(4).rebatch(2)
    with pytest.raises(InvalidArgumentError, match="non-scalar"):
        list(Dataset.range(4).map(lambda x: x).rebatch(2))


def test_arrays_of_different_lengths_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"same number of rows.*\[3, 4\]"):
        Dataset.from_tensor_slices((np.zeros((1, 4)), np.zeros((1, 3)))).rebatch(2)
    with pytest.raises(InvalidArgumentError, match=r"same batch size.*element\[0\]: 2, element\[1\]: 1"):
        list(Dataset.range(4).batch(2).map(lambda x: (x, x[:1])).rebatch(2))


def test_rows_of_different_shapes_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"to be joined, got \(2, 5\), \(1, 6\)"):
        list(Dataset.from_iterable([np.zeros((2, 5)), np.zeros((1, 6))]).rebatch(3))


@given(given=batches_of_rows, sizes=new_sizes, taken=st.integers(0, 12))
def test_a_restored_iterator_goes_on_in_the_middle_of_a_batch(given, sizes, taken):
    dataset = ragged(given).rebatch(sizes)
    iterator, later = iter(dataset), iter(dataset)
    for _ in range(taken):
        next(iterator, None)
    later.set_state(through_a_file(iterator.get_state()))
    assert [batch.tolist() for batch in later] == [batch.tolist() for batch in iterator]
