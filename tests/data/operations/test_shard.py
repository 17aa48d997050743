"""Every n-th element of a dataset."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import INFINITE_CARDINALITY, SHARD_HINT, UNKNOWN_CARDINALITY, Dataset
from ringlet.data.operations.shard import Shard
from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from tests.data.state_cases import through_a_file


def unknown(size):
    """The numbers below `size`, one by one and without a table."""
    return Dataset.from_generator(lambda: range(size), np.int64)


@pytest.mark.parametrize("make", [Dataset.range, unknown])
@given(size=st.integers(0, 60), num_shards=st.integers(1, 9), batch=st.integers(1, 7))
def test_shards_share_out_the_elements_in_turn(make, size, num_shards, batch):
    for index in range(num_shards):
        shard = make(size).shard(num_shards, index)
        assert [int(x) for x in shard] == list(range(size))[index::num_shards]
        assert [x for rows in shard.batch(batch) for x in rows.tolist()] == list(range(size))[index::num_shards]


@given(size=st.integers(0, 60), num_shards=st.integers(1, 9))
def test_the_cardinality_is_that_of_the_shard(size, num_shards):
    for index in range(num_shards):
        shard = Dataset.range(size).shard(num_shards, index)
        assert shard.cardinality() == len(list(shard))


def test_a_cardinality_that_is_no_number_stays():
    assert Dataset.range(3).repeat().shard(2, 1).cardinality() == INFINITE_CARDINALITY
    assert unknown(3).shard(2, 1).cardinality() == UNKNOWN_CARDINALITY
    assert Dataset.range(3).shard(SHARD_HINT, SHARD_HINT).cardinality() == 3


def test_a_shard_of_a_shuffle_is_a_part_of_one_order():
    whole = [int(x) for x in Dataset.range(20).shuffle(20, seed=1)]
    shards = [[int(x) for x in Dataset.range(20).shuffle(20, seed=1).shard(3, i)] for i in range(3)]
    assert shards == [whole[i::3] for i in range(3)]


def test_the_only_shard_is_the_dataset_and_its_batches_stay_views():
    rows = np.arange(6)
    batch = next(iter(Dataset.from_tensor_slices(rows).shard(1, 0).batch(4)))
    assert np.shares_memory(batch, rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0), r"greater than zero \(currently num_shards = 0\)"),
        ((-2, 0), r"greater than zero \(currently num_shards = -2\)"),
        ((3, 3), r"between 0 and 2 \(currently index = 3\)"),
        ((3, -1), r"between 0 and 2 \(currently index = -1\)"),
    ],
)
def test_a_shard_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        Dataset.range(3).shard(*arguments)


@pytest.mark.parametrize("arguments", [(2.5, 0), (2, "0")])
def test_what_is_no_integer_is_refused(arguments):
    with pytest.raises(TypeError, match="must be an integer"):
        Dataset.range(3).shard(*arguments)


@pytest.mark.parametrize("batch", [False, True])
def test_a_hint_that_nobody_filled_in_cannot_be_read(batch):
    dataset = Dataset.range(4).shard(SHARD_HINT, SHARD_HINT)
    with pytest.raises(FailedPreconditionError, match=r"experimental_distribute_dataset.*AutoShardPolicy\.HINT"):
        next(iter(dataset.batch(2) if batch else dataset))


@pytest.mark.parametrize("make", [Dataset.range, unknown])
@pytest.mark.parametrize(("size", "index", "outcome"), [(3, 0, [0]), (3, 2, [2]), (2, 1, None), (2, 2, []), (0, 0, [])])
def test_a_shard_that_checks_the_others_fails_where_one_would_be_empty(make, size, index, outcome):
    shard = Dataset(Shard(make(size).node, 3, index, fills_all=True))
    if outcome is None:
        with pytest.raises(InvalidArgumentError, match=r"only has 2 file\(s\).* 3 shards/workers"):
            list(shard)
    else:
        assert [int(x) for x in shard] == outcome


def test_looking_at_other_shards_loses_nothing():
    shard = Dataset(Shard(unknown(11).node, 3, 1, fills_all=True))
    assert [int(x) for x in shard] == [1, 4, 7, 10]


def test_an_element_whose_function_raises_keeps_its_place():
    def check(x):
        if x in (1, 2):
            raise KeyError(int(x))
        return x

    iterator = iter(Dataset.range(6).map(check).shard(2, 0))
    found = []
    for _ in range(5):
        try:
            found.append(int(next(iterator)))
        except KeyError as error:
            found.append(repr(error))
        except StopIteration:
            break
    assert found == [0, "KeyError(1)", "KeyError(2)", 4]


@pytest.mark.parametrize("make", [Dataset.range, unknown])
@given(size=st.integers(0, 40), taken=st.integers(0, 12), fills_all=st.booleans())
def test_a_restored_iterator_goes_on(make, size, taken, fills_all):
    dataset = Dataset(Shard(make(size + 3).node, 3, 1, fills_all))
    iterator, later = iter(dataset), iter(dataset)
    for _ in range(taken):
        next(iterator, None)
    later.set_state(through_a_file(iterator.get_state()))
    assert [int(x) for x in later] == [int(x) for x in iterator]
