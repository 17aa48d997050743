"""Variables that the processes of a cluster share."""

from __future__ import annotations

import copy
import gc
import os
import pickle

import numpy as np
import pytest

import ringlet
from ringlet import VariableAggregation
from ringlet.compat import tf
from ringlet.errors import InvalidArgumentError
from ringlet.ipc import pack, unpack
from ringlet.values.variables.table_variable import TableVariable, attach_table, forget_tables, reduce_table_variable
from tests.values.tables import DEVICE, on_table, open_files


def test_it_is_a_variable_like_others():
    v = on_table([1.0, 2.0], name="v", trainable=False, aggregation=VariableAggregation.SUM)
    assert isinstance(v, ringlet.Variable)
    assert isinstance(v, tf.Variable)
    assert (v.name, v.dtype, v.shape, v.device, v.trainable) == ("v:0", np.float64, (2,), DEVICE, False)
    assert v.aggregation is VariableAggregation.SUM
    assert repr(v) == "<ringlet.Variable 'v:0' shape=(2,) dtype=float64, numpy=array([1., 2.])>"
    np.testing.assert_array_equal(v * 2 + np.ones(2), [3, 5])
    assert v.ref().deref() is v


def test_assignments_change_it_and_give_itself():
    v = on_table(np.float32(1.5))
    assert v.assign_add(2.0) is v
    assert v.assign_sub(0.5, read_value=False) is None
    assert (v.numpy(), float(v)) == (np.float32(3.0), 3.0)


@pytest.mark.parametrize("value", [np.ones(3), [1.0], 1.0])
def test_a_value_of_another_shape_is_refused(value):
    with pytest.raises(InvalidArgumentError, match="Shape mismatch"):
        on_table([1.0, 2.0]).assign(value)


@pytest.mark.parametrize("options", [{"shape": (None,)}, {"validate_shape": False}])
def test_it_keeps_the_shape_that_it_began_with_whatever_was_asked_for(options):
    with pytest.raises(InvalidArgumentError, match=r"The variable shape \(2,\)"):
        on_table([1.0, 2.0], **options).assign([1.0, 2.0, 3.0])


def test_pickles_and_deep_copies_are_refused_where_no_strategy_is():
    v = on_table(1.0)
    assert copy.copy(v) is v
    for make in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=r"cannot (pickle|copy) variable 'Variable:0'"):
            make(v)


def sent(value):
    """What another task would have of a value: its tables come by their descriptors."""
    tables = []

    def refer(part):
        if isinstance(part, TableVariable):
            tables.append((part.table_key, os.dup(part.fileno())))
            return reduce_table_variable(part)
        return None

    header, buffers = pack(value, refer)
    for key, descriptor in tables:
        attach_table(key, descriptor)
        os.close(descriptor)
    return unpack(header, buffers, lambda token: token[0](*token[1])), [key for key, _ in tables]


def test_another_task_has_the_same_memory_under_the_same_name():
    v = on_table([1.0, 2.0], name="v")
    (twin, again), keys = sent((v, v))
    assert twin is not v
    assert again is twin
    assert (twin.name, twin.device, twin.dtype, twin.table_key) == (v.name, v.device, v.dtype, v.table_key)
    twin.assign_add([10.0, 10.0])
    v.scatter_add(ringlet.IndexedSlices([100.0], [1]))
    assert v.numpy().tolist() == twin.numpy().tolist() == [11.0, 112.0]
    forget_tables(keys)
    assert twin.numpy().tolist() == [11.0, 112.0], "who holds it keeps it"


def test_text_and_tensors_arrive_as_such():
    (text,), keys = sent([on_table("abcd")])
    assert text.assign("xyz").numpy() == "xyz"
    forget_tables(keys)


def test_a_table_that_two_tasks_of_one_process_know_is_there_until_both_forget_it():
    v = on_table(1.0)
    _, first = sent(v)
    twin, second = sent(v)
    forget_tables(first)
    assert reduce_table_variable(v)[0](*reduce_table_variable(v)[1]) is twin
    forget_tables(second)
    with pytest.raises(KeyError):
        reduce_table_variable(v)[0](*reduce_table_variable(v)[1])
    forget_tables(second)  # of what is not known nothing is undone


def test_memory_and_open_files_go_with_the_last_variable():
    gc.collect()
    before = open_files()
    made = [on_table(np.zeros(1000)) for _ in range(50)]
    assert open_files() >= before + 50
    del made
    gc.collect()
    assert open_files() == before
