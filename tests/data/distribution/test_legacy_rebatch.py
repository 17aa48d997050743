"""Batches cut into as many parts as there are replicas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import Dataset, TensorSpec
from ringlet.data.distribution.legacy_rebatch import LegacyRebatch, legacy_rebatch
from ringlet.data.graph.sources import TableSource
from ringlet.data.graph.table import ArrayColumn, Table, row_count
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten
from tests.data.state_cases import through_a_file


@given(size=st.integers(0, 50), batch=st.integers(1, 12), num_replicas=st.integers(1, 6))
def test_each_batch_gives_as_many_parts_as_there_are_replicas(size, batch, num_replicas):
    found = [part.tolist() for part in legacy_rebatch(Dataset.range(size).batch(batch), num_replicas)]
    expected = []
    for rows in Dataset.range(size).batch(batch):
        step = math.ceil(len(rows) / num_replicas)
        expected += [rows[step * i : step * (i + 1)].tolist() for i in range(num_replicas)]
    assert found == expected


def test_parts_may_be_left_out():
    node = LegacyRebatch(Dataset.range(8).batch(5).node, 3, kept=(0, 2))
    assert [part.tolist() for part in Dataset(node)] == [[0, 1], [4], [5], [7]]


def test_parts_are_views():
    rows = np.arange(6)
    assert all(np.shares_memory(part, rows) for part in legacy_rebatch(Dataset.from_tensor_slices(rows).batch(6), 2))


def test_the_spec_knows_a_size_that_all_parts_have():
    dataset = Dataset.range(8).batch(4, drop_remainder=True)
    assert legacy_rebatch(dataset, 2).element_spec == TensorSpec([2], np.int64)
    assert legacy_rebatch(dataset, 3).element_spec == TensorSpec([None], np.int64)


def test_arrays_of_a_structure_are_cut_by_their_own_sizes():
    dataset = Dataset.from_iterable([(np.arange(4), np.arange(2))])
    found = [[x.tolist() for x in part] for part in legacy_rebatch(dataset, 2)]
    assert found == [[[0, 1], [0]], [[2, 3], [1]]]


def test_scalars_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"they hold scalars.*dataset\.batch"):
        _ = legacy_rebatch(Dataset.range(3), 2).element_spec
    with pytest.raises(InvalidArgumentError, match=r"holds the scalar.*dataset\.batch"):
        list(legacy_rebatch(Dataset.range(3), 2))
    with pytest.raises(InvalidArgumentError, match="num_replicas"):
        legacy_rebatch(Dataset.range(3).batch(2), 0)


@given(size=st.integers(0, 40), batch=st.integers(1, 9), drop=st.booleans(), is_shuffled=st.booleans())
def test_rows_of_a_table_and_elements_are_cut_alike(size, batch, drop, is_shuffled):
    rows = Dataset.range(size).shuffle(9, reshuffle_each_iteration=False) if is_shuffled else Dataset.range(size)
    elements = rows.map(lambda x: x)
    found, expected = (
        [part.tolist() for part in Dataset(LegacyRebatch(dataset.batch(batch, drop).node, 4, kept=(1, 3)))]
        for dataset in (rows, elements)
    )
    assert found == expected


def test_rows_that_are_not_kept_are_not_gathered():
    gathered = []

    class Counting(ArrayColumn):
        def rows(self, rows):
            gathered.append(row_count(rows))
            return super().rows(rows)

    table = Table((Counting(np.arange(24)),), flatten(0)[1], 24)
    dataset = Dataset(TableSource(table)).shuffle(24).batch(12)
    for _ in Dataset(LegacyRebatch(dataset.node, 4, kept=(1, 3))):
        pass
    assert gathered == [3, 3, 3, 3]


@pytest.mark.parametrize("kept", [None, (0, 2)])
@given(taken=st.integers(0, 12))
def test_a_restored_iterator_goes_on_in_the_middle_of_a_batch(kept, taken):
    dataset = Dataset(LegacyRebatch(Dataset.range(11).shuffle(5).batch(4).node, 3, kept))
    iterator, later = iter(dataset), iter(dataset)
    for _ in range(taken):
        next(iterator, None)
    later.set_state(through_a_file(iterator.get_state()))
    assert [part.tolist() for part in later] == [part.tolist() for part in iterator]
