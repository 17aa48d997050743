"""Variables that are the rows of a larger one; recorded cases are in tests/conformance."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import ringlet
from ringlet import IndexedSlices
from ringlet.compat import tf
from ringlet.errors import InvalidArgumentError
from ringlet.values import ShardedVariable
from tests.values.tables import sharded

VALUE = np.arange(14.0).reshape(7, 2)


def private(value=VALUE, sizes=(3, 2, 2)):
    return ShardedVariable([ringlet.Variable(part) for part in np.split(np.asarray(value), np.cumsum(sizes)[:-1])])


def on_tables(value=VALUE, sizes=(3, 2, 2)):
    return sharded(value, list(sizes))


both = pytest.mark.parametrize("make", [private, on_tables])


@both
def test_it_is_its_value_in_expressions(make):
    variable = make()
    np.testing.assert_array_equal(variable * 2 + 1, VALUE * 2 + 1)
    np.testing.assert_array_equal(1 - variable, 1 - VALUE)
    assert np.sum(variable) == VALUE.sum()
    assert (variable == VALUE).all()
    np.testing.assert_array_equal(variable @ np.ones(2), VALUE @ np.ones(2))


@both
def test_slices_that_begin_at_a_row_are_those_of_the_whole(make):
    variable, count = make(), len(VALUE)
    for start in (None, *range(-count, count)):
        for stop in (None, *range(-count - 2, count + 3)):
            for step in (None, 1, 2, 5, -1, -2, -5):
                key = slice(start, stop, step)
                found = variable[key]
                assert found.tolist() == VALUE[key].tolist(), key
                assert found.shape == VALUE[key].shape, key


def test_it_is_no_variable_but_its_shards_are_and_iteration_gives_them():
    variable = private()
    assert not isinstance(variable, ringlet.Variable)
    assert [shard.shape for shard in variable] == [(3, 2), (2, 2), (2, 2)]
    assert hash(variable) == hash(variable)
    assert bool(private(np.zeros((0, 2)), [0, 0]))


@pytest.mark.parametrize("count", [len, lambda variable: list(reversed(variable))])
def test_it_has_no_length_which_could_be_of_its_rows_or_of_its_shards(count):
    with pytest.raises(TypeError, match=r"has no len\(\).*use shape\[0\] for the number of rows"):
        count(private())


def test_its_name_does_not_become_that_of_a_sum():
    variable = private()
    with pytest.raises(NotImplementedError, match=r"assign_add\(value\)"):
        variable += 1


@both
def test_a_value_of_another_shape_is_refused_and_nothing_is_written(make):
    variable = make()
    for shape in [(8, 2), (6, 2), (7, 1), ()]:
        with pytest.raises(InvalidArgumentError, match=r"Shape mismatch.* \(7, 2\)"):
            variable.assign(np.ones(shape))
    np.testing.assert_array_equal(variable, VALUE)


@both
def test_lists_are_taken_as_by_any_variable(make):
    assert make().assign([[1, 2]] * 7)[6].tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="Cannot convert"):
        make().assign([["a", "b"]] * 7)


@both
def test_a_value_of_another_dtype_is_refused(make):
    with pytest.raises(ValueError, match="float64, but the value is an array of float32"):
        make().assign_add(np.ones((7, 2), np.float32))


def test_assignments_give_the_variable_itself_whatever_they_are_asked_for():
    variable = private()
    assert variable.assign(VALUE.tolist(), read_value=False) is variable
    assert variable.assign_sub(variable) is variable
    assert not np.any(variable)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "min", "max", "update"])
@both
def test_scatters_do_what_they_do_to_the_whole_and_rows_that_repeat_come_one_after_the_other(make, name):
    slices = IndexedSlices(np.array([[2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0]]), [6, 0, 6, 3])
    whole, variable = ringlet.Variable(VALUE), make()
    getattr(whole, f"scatter_{name}")(slices)
    assert getattr(variable, f"scatter_{name}")(slices) is variable
    np.testing.assert_allclose(variable, whole.numpy(), rtol=1e-15)


@both
def test_a_row_that_is_not_there_is_named_and_nothing_is_written(make):
    variable = make()
    with pytest.raises(InvalidArgumentError, match=r"indices\[1\] = 7 is not in \[0, 7\)"):
        variable.scatter_add(IndexedSlices(np.ones((2, 2)), [0, 7]))
    np.testing.assert_array_equal(variable, VALUE)
    assert variable.scatter_add(IndexedSlices(1.0, [0, 6])).numpy().sum() == VALUE.sum() + 4


@both
def test_a_division_by_zero_is_refused_before_any_shard_is_written(make):
    variable = make()
    with pytest.raises(InvalidArgumentError, match="updates must not contain 0"):
        variable.scatter_div(IndexedSlices([[2.0, 2.0], [2.0, 0.0]], [0, 6]))
    np.testing.assert_array_equal(variable, VALUE)


def test_scatters_and_sparse_reads_take_a_list_of_rows():
    with pytest.raises(ValueError, match=r"must be 1D Tensor.* Received shape: \(1, 1\)"):
        private().scatter_add(IndexedSlices(np.ones((1, 1, 2)), [[1]]))
    with pytest.raises(ValueError, match=r"Received shape: \(\)"):
        private().sparse_read(1)
    with pytest.raises(NotImplementedError, match=r"\[2, 1, 3\] rows, expected \[2, 2, 2\]"):
        private(VALUE[:6], [2, 1, 3]).sparse_read([1])
    with pytest.raises(NotImplementedError, match=r"\[2, 3, 2\] rows, expected \[3, 2, 2\]"):
        private(VALUE, [2, 3, 2]).scatter_add(IndexedSlices(np.ones((1, 2)), [1]))


@both
def test_a_sparse_read_gives_rows_in_the_order_in_which_they_are_asked_for(make):
    np.testing.assert_array_equal(make().sparse_read([6, 0, 3, 0]), VALUE[[6, 0, 3, 0]])


@both
def test_bools_are_assigned_and_not_added(make):
    variable = make(np.array([True, False, True]), [2, 1])
    assert variable.assign([False, False, True])[2]
    with pytest.raises(InvalidArgumentError, match="assign_add requires numbers"):
        variable.assign_add([True, True, True])


def test_shards_have_rows_and_one_kind_of_them():
    for shards, text in [
        ([ringlet.Variable(1.0)], "have no rows"),
        ([ringlet.Variable([[1.0]]), ringlet.Variable([1.0])], "same shapes except for the first"),
        ([ringlet.Variable([1.0]), ringlet.Variable([1])], r"same dtype.*\['float64', 'int64'\]"),
    ]:
        with pytest.raises(ValueError, match=text):
            ShardedVariable(shards)
    with pytest.raises(TypeError, match=r"without a static shape.*\[\(None,\)\]"):
        ShardedVariable([ringlet.Variable([1.0], shape=(None,))])
    for nonsense in ([], "ab", [1], None, ringlet.Variable([1.0])):
        with pytest.raises(TypeError, match="non-empty list of"):
            ShardedVariable(nonsense)


def test_it_stays_what_it_was_made_of_when_the_list_changes():
    shards = [ringlet.Variable([1.0]), ringlet.Variable([2.0])]
    variable = ShardedVariable(shards)
    shards.clear()
    variable.variables.clear()
    assert variable.numpy().tolist() == [1.0, 2.0]


def test_a_shallow_copy_has_the_same_shards_and_a_deep_one_others():
    variable = private()
    assert copy.copy(variable).variables == variable.variables
    twin = copy.deepcopy(variable)
    twin.assign(VALUE + 1)
    np.testing.assert_array_equal(variable, VALUE)
    with pytest.raises(TypeError, match="cannot pickle variable"):
        pickle.dumps(variable)


def test_shards_that_give_tensors_make_a_whole_that_does():
    variable = ShardedVariable([tf.Variable([1.0, 2.0]), tf.Variable([3.0])])
    for value in (variable.read_value(), variable[1:], variable.sparse_read([0])):
        assert isinstance(value, tf.Tensor)


def test_the_text_of_one_tells_its_shards():
    assert repr(private()) == "<ringlet.ShardedVariable 'ShardedVariable' shape=(7, 2) dtype=float64, 3 shards>"
