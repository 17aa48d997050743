"""What variables are worth where there are other numbers of replicas."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet import Variable, VariableAggregation, VariableSynchronization
from ringlet.errors import InvalidArgumentError
from ringlet.train import Checkpoint
from ringlet.values import ShardedVariable
from tests.values.tables import on_table, sharded

NONE, SUM, MEAN = VariableAggregation.NONE, VariableAggregation.SUM, VariableAggregation.MEAN
FIRST = VariableAggregation.ONLY_FIRST_REPLICA
STRATEGIES = {count: ringlet.MirroredStrategy([f"CPU:{i}" for i in range(count)]) for count in (1, 2, 3, 4)}


def made(count, value, is_on_read, aggregation):
    """A variable of a strategy with so many replicas; 0 for one outside of strategies."""
    if count == 0:
        return Variable(value)
    synchronization = VariableSynchronization.ON_READ if is_on_read else VariableSynchronization.ON_WRITE
    with STRATEGIES[count].scope():
        return Variable(value, synchronization=synchronization, aggregation=aggregation)


def components(variable):
    return [component.numpy().tolist() for component in getattr(variable, "values", [variable])]


def moved(tmp_path, values, is_on_read, aggregation, count, *, to_on_read=None):
    """Save a variable with these components, and give those of one that was restored."""
    variable = made(len(values), values[0], is_on_read, aggregation)
    for component, value in zip(variable.values, values, strict=True):
        component.assign(value)
    path = Checkpoint(v=variable).write(tmp_path / "it")
    other = made(count, np.zeros_like(values[0]), is_on_read if to_on_read is None else to_on_read, aggregation)
    Checkpoint(v=other).read(path).assert_consumed()
    return components(other)


def ints(*values):
    return [np.int64(value) for value in values]


def floats(*values):
    return [np.float64(value) for value in values]


@pytest.mark.parametrize(("is_on_read", "aggregation"), [(False, NONE), (True, SUM), (True, MEAN), (True, FIRST)])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_component_comes_back_to_as_many_replicas(tmp_path, is_on_read, aggregation, count):
    values = floats(*range(5, 5 + count))
    assert moved(tmp_path, values, is_on_read, aggregation, count) == values


CASES = [
    # saved components, ON_READ, aggregation, replicas: components
    (ints(5, 5), False, NONE, 3, [5, 5, 5]),
    (ints(5, 7), False, NONE, 3, [5, 5, 5]),
    (ints(5, 7, 9), False, NONE, 2, [5, 5]),
    (ints(5, 7), True, SUM, 1, [12]),
    (ints(5, 7), True, SUM, 3, [4, 4, 4]),
    (ints(5, 8), True, SUM, 3, [5, 4, 4]),
    (ints(5, 5), True, SUM, 4, [4, 2, 2, 2]),
    (floats(1, 2), True, SUM, 4, [0.75, 0.75, 0.75, 0.75]),
    (floats(1, 2), True, MEAN, 3, [1.5, 1.5, 1.5]),
    (ints(4, 9), True, FIRST, 3, [4, 4, 4]),
    (ints(4, 9), True, NONE, 1, [4]),
    (ints(5, 7), True, SUM, 0, [12]),
    (ints(5, 7), False, NONE, 0, [5]),
]


@pytest.mark.parametrize("case", CASES)
def test_another_number_of_replicas_gets_what_the_whole_was_worth(tmp_path, case):
    *moved_with, expected = case
    assert moved(tmp_path, *moved_with) == expected


def test_a_variable_of_no_strategy_goes_into_one_of_any(tmp_path):
    path = Checkpoint(v=Variable(np.int64(7))).write(tmp_path / "it")
    for is_on_read, aggregation, expected in [(False, NONE, [7, 7]), (True, SUM, [4, 3]), (True, FIRST, [7, 7])]:
        other = made(2, np.int64(0), is_on_read, aggregation)
        Checkpoint(v=other).read(path).assert_consumed()
        assert components(other) == expected


def test_a_sum_that_was_saved_goes_whole_into_a_mirrored_variable_of_as_many_replicas(tmp_path):
    assert moved(tmp_path, ints(5, 7), True, SUM, 2, to_on_read=False) == [12, 12]
    assert moved(tmp_path, ints(8, 8), False, SUM, 2, to_on_read=True) == [4, 4]


def test_components_that_shared_memory_share_it_again(tmp_path):
    v = made(3, np.ones(4), False, NONE)
    path = Checkpoint(v=v).write(tmp_path / "it")
    for component in v.values:
        component.assign(np.zeros(4))
    assert not v._storage.is_shared
    Checkpoint(v=v).read(path)
    assert v._storage.is_shared
    other = made(4, np.zeros(4), False, NONE)
    Checkpoint(v=other).read(path)
    assert other._storage.is_shared


def test_what_cannot_be_added_up_is_what_the_first_replica_had(tmp_path):
    assert moved(tmp_path, [np.array(True), np.array(False)], True, SUM, 3) == [True, True, True]


def test_a_variable_of_central_storage_is_one_of_one_component(tmp_path):
    strategy = ringlet.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        v = Variable(3.0, aggregation=SUM)
    path = Checkpoint(v=v).write(tmp_path / "it")
    other = made(2, 0.0, False, NONE)
    Checkpoint(v=other).read(path)
    assert components(other) == [3.0, 3.0]


# --- variables that are made of rows ----------------------------------------------------------------------------------

ROWS = np.arange(14.0).reshape(7, 2)


def plain(value):
    return Variable(value)


def mirrored(value):
    return made(2, value, False, NONE)


def shards_of_their_own(value):
    return ShardedVariable([Variable(part) for part in np.split(value, [2])])


def shards_on_tables(value):
    return sharded(value, [3, 2, 2])


KINDS = [plain, mirrored, on_table, shards_of_their_own, shards_on_tables]


@pytest.mark.parametrize("there", KINDS)
@pytest.mark.parametrize("here", KINDS)
def test_a_variable_is_restored_whatever_it_consists_of(tmp_path, here, there):
    path = Checkpoint(v=here(ROWS), other=Variable(1.0)).write(tmp_path / "it")
    variable = there(np.zeros((7, 2)))
    before = variable.read_value()
    Checkpoint(v=variable, other=Variable(2.0)).read(path).assert_consumed()
    np.testing.assert_array_equal(variable, ROWS)
    assert not before.any(), "what was read never changes"


@pytest.mark.parametrize("there", [on_table, shards_on_tables, shards_of_their_own])
def test_rows_that_do_not_fit_are_refused_and_nothing_is_changed(tmp_path, there):
    path = Checkpoint(v=Variable(np.ones((8, 2))), w=Variable(2.0)).write(tmp_path / "it")
    variable, other = there(ROWS), Variable(1.0)
    with pytest.raises(InvalidArgumentError, match=r"shape \(8, 2\) when attempting to restore .* shape \(7, 2\)"):
        Checkpoint(v=variable, w=other).read(path)
    np.testing.assert_array_equal(variable, ROWS)
    assert other.numpy() == 1.0


def test_rows_are_saved_once_under_every_name_of_theirs(tmp_path):
    table = shards_on_tables(ROWS)
    path = Checkpoint(a=table, b=[table], text=on_table("abc")).write(tmp_path / "it")
    other, text = shards_of_their_own(np.zeros((7, 2))), on_table("xyz")
    Checkpoint(a=other, b=[other], text=text).read(path).assert_consumed()
    np.testing.assert_array_equal(other, ROWS)
    assert text.numpy() == "abc"
