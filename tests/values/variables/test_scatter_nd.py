"""Elements are read and changed by tuples of indices, with TensorFlow's answers."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet import IndexedSlices, MirroredStrategy, OneDeviceStrategy, Variable, VariableSynchronization
from ringlet.errors import InvalidArgumentError
from ringlet.experimental import CentralStorageStrategy
from ringlet.values import ShardedVariable
from ringlet.values.indexed_slices import SCATTERS
from ringlet.values.variables.scatter_nd import ND_SCATTERS, ScatterNdUpdates, rows_of

FOUR = [1.0, 2.0, 3.0, 4.0]
SQUARE = [[1.0, 2.0], [3.0, 4.0]]
DEVICES = ["CPU:0", "CPU:1"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("scatter_nd_add", [13.0, 2.0, -3.0, 4.0]),
        ("scatter_nd_sub", [-11.0, 2.0, 9.0, 4.0]),
        ("scatter_nd_update", [7.0, 2.0, -6.0, 4.0]),
        ("scatter_nd_min", [1.0, 2.0, -6.0, 4.0]),
        ("scatter_nd_max", [7.0, 2.0, 3.0, 4.0]),
    ],
)
def test_each_tuple_is_heeded_in_turn(name, expected):
    v = Variable(FOUR)
    before = v.read_value()
    assert getattr(v, name)([[0], [2], [0]], [5.0, -6.0, 7.0]) is v
    assert v.numpy().tolist() == expected
    assert before.tolist() == FOUR


@pytest.mark.parametrize(
    ("indices", "updates", "expected"),
    [
        ([[0, 1]], [5.0], [[1.0, 7.0], [3.0, 4.0]]),
        ([[0]], [[5.0, 6.0]], [[6.0, 8.0], [3.0, 4.0]]),
        ([[[0], [1]]], [[[5.0, 6.0], [1.0, 1.0]]], [[6.0, 8.0], [4.0, 5.0]]),
        ([1], [5.0, 6.0], [[1.0, 2.0], [8.0, 10.0]]),
        (np.zeros((0, 1), int), np.zeros((0, 2)), SQUARE),
    ],
)
def test_tuples_index_the_first_dimensions(indices, updates, expected):
    assert Variable(SQUARE).scatter_nd_add(indices, updates).numpy().tolist() == expected


@pytest.mark.parametrize(
    ("indices", "updates", "text"),
    [
        ([[9]], [5.0], r"indices\[0\] = \[9\] does not index into shape \(4,\)"),
        ([[0], [-1]], [5.0, 5.0], r"indices\[1\] = \[-1\] does not index into shape"),
        ([[1], [2]], [5.0], r"need updates of shape \(2,\), got \(1,\)"),
        ([[1], [2]], 5.0, r"got \(\)"),
        ([[1, 2]], [5.0], "innermost dimension length must be <= params rank; saw: 2 vs. 1"),
        (np.zeros((1, 0), int), [FOUR], "index no dimension"),
        (1, 5.0, "at least a vector"),
    ],
)
def test_what_has_no_place_is_refused_and_nothing_is_written(indices, updates, text):
    v = Variable(FOUR)
    with pytest.raises(InvalidArgumentError, match=text):
        v.scatter_nd_add(indices, updates)
    assert v.numpy().tolist() == FOUR


def test_indices_are_integers():
    with pytest.raises(TypeError, match="indices must be integers"):
        Variable(FOUR).scatter_nd_add([[1.0]], [5.0])


def test_batches_are_updated_by_the_row():
    v = Variable(np.arange(12.0).reshape(2, 3, 2))
    v.batch_scatter_update(IndexedSlices([[[9.0, 8.0]], [[7.0, 6.0]]], [[0], [2]]))
    assert v.numpy().tolist() == [[[9.0, 8.0], [2.0, 3.0], [4.0, 5.0]], [[6.0, 7.0], [8.0, 9.0], [7.0, 6.0]]]
    slices = IndexedSlices([[9.0, 7.0], [8.0, 6.0]], [[0, 1], [1, 0]])
    assert Variable(SQUARE).batch_scatter_update(slices).numpy().tolist() == [[9.0, 7.0], [6.0, 8.0]]
    assert Variable(FOUR).batch_scatter_update(IndexedSlices([9.0], [1])).numpy().tolist() == [1.0, 9.0, 3.0, 4.0]
    with pytest.raises(TypeError, match="IndexedSlices"):
        v.batch_scatter_update(3)
    with pytest.raises(InvalidArgumentError, match=r"\[1, 5\] does not index into shape"):
        Variable(SQUARE).batch_scatter_update(IndexedSlices([[9.0], [8.0]], [[0], [5]]))


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ([[0, 1], [1, 1]], [2.0, 4.0]),
        ([[1], [0]], [[3.0, 4.0], [1.0, 2.0]]),
        ([1, 0], 3.0),
        (np.zeros((2, 0), int), [SQUARE, SQUARE]),
    ],
)
def test_tuples_are_read(indices, expected):
    assert np.asarray(Variable(SQUARE).gather_nd(indices)).tolist() == expected


def test_a_tuple_that_is_not_there_is_not_read():
    with pytest.raises(InvalidArgumentError, match=r"indices\[0\] = \[2\] does not index"):
        Variable(SQUARE).gather_nd([[2]])
    with pytest.raises(InvalidArgumentError, match="at least a vector"):
        Variable(SQUARE).gather_nd(1)


@pytest.mark.parametrize("synchronization", [VariableSynchronization.ON_WRITE, VariableSynchronization.ON_READ])
@pytest.mark.parametrize("name", ND_SCATTERS)
def test_variables_with_components_are_read_and_not_scattered(name, synchronization):
    strategy = MirroredStrategy(DEVICES)
    with strategy.scope():
        v = Variable(SQUARE, synchronization=synchronization)
    with pytest.raises(NotImplementedError, match=name):
        strategy.run(lambda: getattr(v, name)([[0, 0]], [9.0]))
    with pytest.raises(NotImplementedError, match=name):
        getattr(v, name)([[0, 0]], [9.0])
    with pytest.raises(NotImplementedError):
        v.batch_scatter_update(IndexedSlices([[9.0], [8.0]], [[0], [1]]))
    assert strategy.run(lambda: v.gather_nd([[1, 1]])).values[0].tolist() == [4.0]


@pytest.mark.parametrize("make", [lambda: OneDeviceStrategy("CPU:0"), lambda: CentralStorageStrategy(DEVICES, "CPU:0")])
def test_variables_in_one_place_are_scattered_by_each_replica(make):
    strategy = make()
    with strategy.scope():
        v = Variable(FOUR)
    strategy.run(lambda: v.scatter_nd_add([[0]], [5.0]))
    assert v.numpy().tolist() == [1.0 + 5.0 * strategy.num_replicas_in_sync, 2.0, 3.0, 4.0]
    v.batch_scatter_update(IndexedSlices([9.0], [1]))
    assert v.gather_nd([[1]]).tolist() == [9.0]


def test_a_sharded_variable_has_batches_of_one_row():
    v = ShardedVariable([Variable([1.0, 2.0]), Variable([3.0])])
    assert v.batch_scatter_update(IndexedSlices([9.0], [2])) is v
    assert np.asarray(v).tolist() == [1.0, 2.0, 9.0]


def test_what_is_written_by_the_row_takes_tuples_of_one_index():
    change, slices = rows_of(ND_SCATTERS["scatter_nd_max"], IndexedSlices([[5.0, 6.0]], [[1]]), (2, 2))
    assert (change, slices.indices.tolist()) == (SCATTERS["scatter_max"], [1])
    with pytest.raises(NotImplementedError, match="updated by row"):
        rows_of(ND_SCATTERS["scatter_nd_max"], IndexedSlices([5.0], [[1, 1]]), (2, 2))


def test_a_variable_has_its_first_value():
    assert Variable(FOUR).initializer is None


def test_a_class_without_a_value_says_so():
    with pytest.raises(NotImplementedError, match="does not define"):
        ScatterNdUpdates().scatter_nd_add([[0]], [1.0])
