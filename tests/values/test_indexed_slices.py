"""Rows are scattered as TensorFlow scatters them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringlet
from ringlet import IndexedSlices, MirroredStrategy, ReduceOp, Variable, VariableAggregation
from ringlet.errors import InvalidArgumentError
from ringlet.values.indexed_slices import SCATTERS, dense_of, reduce_slices

OPERATIONS = {
    "scatter_add": np.add,
    "scatter_sub": np.subtract,
    "scatter_mul": np.multiply,
    "scatter_div": np.divide,
    "scatter_min": np.minimum,
    "scatter_max": np.maximum,
    "scatter_update": lambda old, new: new,
}


@pytest.mark.parametrize("name", SCATTERS)
@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=8))
def test_every_row_is_combined_in_turn_even_if_its_index_comes_again(name, rows):
    v, model = Variable(np.arange(8.0).reshape(4, 2)), np.arange(8.0).reshape(4, 2)
    values = np.array([[value, -value] for _, value in rows], float).reshape(-1, 2)
    for (index, _), row in zip(rows, values, strict=True):
        model[index] = OPERATIONS[name](model[index], row)
    assert getattr(v, name)(IndexedSlices(values, [index for index, _ in rows])) is v
    np.testing.assert_allclose(v.numpy(), model)


def test_a_value_that_was_read_survives_a_scatter():
    v = Variable([1.0, 2.0])
    before = v.read_value()
    v.scatter_add(IndexedSlices([5.0], [1]))
    assert (before.tolist(), v.numpy().tolist()) == ([1, 2], [1, 7])


def test_integers_are_divided_towards_zero():
    v = Variable([7, -7, 7, -7])
    v.scatter_div(IndexedSlices([2, 2, -2, -2], [0, 1, 2, 3]))
    assert v.numpy().tolist() == [3, -3, -3, 3]


@pytest.mark.parametrize("value", [[7, -7], [7.0, -7.0]])
@pytest.mark.parametrize("rows", [[2, 0], 0])
def test_nothing_is_divided_by_zero(value, rows):
    v = Variable(value)
    with pytest.raises(InvalidArgumentError, match="updates must not contain 0"):
        v.scatter_div(IndexedSlices(rows, [0, 1]))
    assert v.numpy().tolist() == value


@pytest.mark.parametrize("shape", [(1, 2), (2,), (1,), (2, 1), (3, 2)])
def test_rows_are_one_for_each_index_and_are_not_repeated(shape):
    v = Variable(np.zeros((3, 2)))
    with pytest.raises(InvalidArgumentError, match=r"need values of shape \(2, 2\), got .*one number for all"):
        v.scatter_add(IndexedSlices(np.ones(shape), [0, 2]))
    v.scatter_add(IndexedSlices(1.0, [0, 2]))
    assert v.numpy().tolist() == [[1, 1], [0, 0], [1, 1]]


def test_rows_for_no_index_change_nothing():
    v = Variable(np.zeros((3, 2)))
    v.scatter_div(IndexedSlices(np.zeros((0, 5)), []))
    assert v.numpy().tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("indices", [[2], [-1], [[0], [5]]])
def test_an_index_outside_is_refused_and_nothing_is_written(indices):
    v = Variable([1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match=r"indices\[.*\] = -?\d is not in \[0, 2\)"):
        v.scatter_add(IndexedSlices(np.ones(np.shape(indices)), indices))
    assert v.numpy().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("slices", "error", "text"),
    [
        (IndexedSlices([1.0], [0.5]), TypeError, "indices must be integers"),
        (IndexedSlices([1.0, 2.0, 3.0], [0, 1]), InvalidArgumentError, "one row for each index"),
        (IndexedSlices(np.ones(1, np.float32), [0]), ValueError, "holds float64"),
        (5.0, TypeError, "a scatter takes an IndexedSlices, got 5.0"),
    ],
)
def test_what_does_not_fit_is_refused(slices, error, text):
    with pytest.raises(error, match=text):
        Variable([1.0, 2.0]).scatter_add(slices)


def test_a_variable_without_dimensions_has_no_rows():
    with pytest.raises(InvalidArgumentError, match="use assign"):
        Variable(1.0).scatter_add(IndexedSlices(1.0, 0))


def test_anything_with_indices_and_values_will_do():
    class Rows:
        indices, values = np.array([1]), np.array([5.0])

    assert Variable([1.0, 2.0]).scatter_add(Rows()).numpy().tolist() == [1, 7]


def test_rows_of_all_replicas_follow_each_other():
    parts = [IndexedSlices(np.array([[2.0, 4.0]]), np.array([1])), IndexedSlices(np.array([[6.0, 8.0]]), np.array([1]))]
    total, mean = reduce_slices(ReduceOp.SUM, parts), reduce_slices(ReduceOp.MEAN, parts)
    assert (total.values.tolist(), total.indices.tolist()) == ([[2, 4], [6, 8]], [1, 1])
    assert mean.values.tolist() == [[1, 2], [3, 4]]


def test_replicas_that_scatter_together_scatter_the_rows_of_all():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        v = Variable([0.0, 0.0, 0.0], aggregation=ringlet.VariableAggregation.SUM)

    def step():
        replica = int(ringlet.get_replica_context().replica_id_in_sync_group)
        v.scatter_add(IndexedSlices(np.array([1.0, 10.0]) * (replica + 1), np.array([replica, 2])))

    strategy.run(step)
    assert v.numpy().tolist() == [1, 2, 30]


def test_lists_of_rows_take_the_dtype_of_the_variable():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        v = Variable([0.0, 0.0], dtype=np.float32, aggregation=ringlet.VariableAggregation.SUM, name="v")
    strategy.run(lambda: v.scatter_add(IndexedSlices([1.0], [1])))
    assert v.numpy().tolist() == [0, 2]
    with pytest.raises(ValueError, match="'v:0' holds float32"):
        strategy.run(lambda: v.scatter_add(IndexedSlices(np.ones(1), [1])))


def test_rows_that_are_the_same_object_in_all_replicas_cannot_be_summed():
    strategy, rows = ringlet.MirroredStrategy(["CPU:0", "CPU:1"]), IndexedSlices([1.0], [1])
    with strategy.scope():
        v = Variable([0.0, 0.0], aggregation=ringlet.VariableAggregation.SUM)
    with pytest.raises(ValueError, match="A non-DistributedValues value IndexedSlices"):
        strategy.run(lambda: v.scatter_add(rows))


def test_its_parts_cannot_be_replaced():
    slices = IndexedSlices([1.0], [0], dense_shape=(3,))
    assert slices.dense_shape == (3,)
    with pytest.raises(AttributeError):
        slices.values = 5


def test_the_whole_array_has_zeros_and_sums():
    slices = IndexedSlices(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), [0, 2, 2], [4, 2])
    assert dense_of(slices).tolist() == [[1.0, 2.0], [0.0, 0.0], [8.0, 10.0], [0.0, 0.0]]
    assert dense_of(3) == 3


@pytest.mark.parametrize(
    ("slices", "text"),
    [
        (IndexedSlices([1.0], [0]), "IndexedSlices without dense_shape"),
        (IndexedSlices([1.0], [7], [4]), r"indices\[0\] = 7 is not in \[0, 4\)"),
        (IndexedSlices([1.0], [-1], [4]), r"indices\[0\] = -1 is not in \[0, 4\)"),
        (IndexedSlices([1.0, 2.0, 3.0], [0, 2], [4]), r"need values of shape \(2,\), got \(3,\)"),
    ],
)
def test_there_is_no_whole_array_of_rows_that_have_no_place(slices, text):
    with pytest.raises(ValueError, match=text):
        dense_of(slices)


def test_assignments_take_the_whole_array():
    v = Variable(np.ones(4, np.float32))
    slices = IndexedSlices([1.0, 2.0], [0, 2], [4])
    assert v.assign_add(slices).numpy().tolist() == [2.0, 1.0, 3.0, 1.0]
    assert v.assign_sub(slices).numpy().tolist() == [1.0, 1.0, 1.0, 1.0]
    assert v.assign(slices).numpy().tolist() == [1.0, 0.0, 2.0, 0.0]


def test_replicas_assign_the_sum_of_whole_arrays():
    strategy = MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        v = Variable(np.zeros(4), aggregation=VariableAggregation.SUM)
    strategy.run(lambda: v.assign_add(IndexedSlices(np.array([1.0, 2.0]), [0, 2], [4])))
    assert v.read_value().tolist() == [2.0, 0.0, 4.0, 0.0]
