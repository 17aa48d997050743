"""A variable is a value that programs change; what was read from it stays."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import weakref

import numpy as np
import pytest

import ringlet
from ringlet import Variable, VariableAggregation, VariableSynchronization
from ringlet.errors import InvalidArgumentError

HOST = "/job:localhost/replica:0/task:0/device:CPU:0"


def test_it_has_what_it_was_made_with():
    def constraint(value):
        return value

    v = Variable([1, 2], trainable=False, name="steps", dtype=np.float32, constraint=constraint)
    assert (v.name, v.dtype, v.shape, v.ndim, v.size) == ("steps:0", np.float32, (2,), 1, 2)
    assert (v.trainable, v.constraint, v.device) == (False, constraint, HOST)
    assert v.synchronization is VariableSynchronization.AUTO
    assert v.aggregation is VariableAggregation.NONE
    assert v.distribute_strategy is None


def test_names_need_not_be_unique_and_have_a_default():
    assert [Variable(1, name="v").name, Variable(1, name="v").name, Variable(1).name] == ["v:0", "v:0", "Variable:0"]


def test_it_is_trainable_unless_it_is_combined_when_it_is_read():
    assert Variable(1.0).trainable
    assert not Variable(1.0, synchronization=VariableSynchronization.ON_READ).trainable
    assert Variable(1.0, True, synchronization=VariableSynchronization.ON_READ).trainable


def test_it_keeps_a_copy_of_the_initial_value():
    array = np.ones(2)
    v = Variable(array)
    array[0] = 5
    assert v.numpy().tolist() == [1, 1]


def test_a_callable_gives_the_initial_value_once():
    calls = []
    v = Variable(lambda: calls.append(1) or np.ones(2))
    assert (v.shape, len(calls)) == ((2,), 1)


def test_a_variable_may_begin_as_another_one():
    v = Variable([1.0, 2.0])
    twin = Variable(v)
    v.assign([5.0, 5.0])
    assert twin.numpy().tolist() == [1, 2]


def test_without_an_initial_value_there_is_no_variable():
    with pytest.raises(ValueError, match="`initial_value` of a variable must be specified"):
        Variable()


def test_a_mistyped_argument_is_refused():
    with pytest.raises(TypeError, match="trainible"):
        Variable(1.0, trainible=True)
    with pytest.raises(TypeError, match=r"by position, but also got \('n',\): use keywords .*ringlet.Variable\("):
        Variable(1.0, None, True, "n")
    assert "initial_value" in inspect.signature(Variable).parameters


@pytest.mark.parametrize("keywords", [{"aggregation": "SUM"}, {"synchronization": "ON_READ"}])
def test_modes_are_checked_outside_of_strategies_too(keywords):
    with pytest.raises(ValueError, match="Invalid variable"):
        Variable(1.0, **keywords)


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [Variable.read_value, Variable.value, np.asarray])
def test_what_was_read_is_read_only_and_never_changes(read):
    v = Variable([1.0, 2.0])
    before = read(v)
    v.assign([3.0, 4.0])
    v.assign_add([1.0, 1.0])
    assert before.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        before[0] = 5
    with pytest.raises(ValueError, match="WRITEABLE"):
        before.setflags(write=True)


def test_numpy_gives_a_copy_to_write_to_or_a_number():
    array = Variable([1.0, 2.0]).numpy()
    array[0] = 5
    assert array.tolist() == [5, 2]
    assert type(Variable(np.float32(1.5)).numpy()) is np.float32


# --- writing ---------------------------------------------------------------------------------------------------------


def test_writes_give_the_variable_so_that_they_can_be_chained():
    v = Variable(1.0)
    assert v.assign(2.0).assign_add(3.0).assign_sub(1.0) is v
    assert v.assign(5.0, read_value=False) is None
    assert v.numpy() == 5


def test_use_locking_and_name_are_accepted():
    assert Variable(1.0).assign_add(1.0, use_locking=True, name="add").numpy() == 2


@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
@pytest.mark.parametrize(
    ("value", "error"), [(np.ones(2, np.float32), ValueError), (np.ones(3), ValueError), (1.0, ValueError)]
)
def test_a_value_that_does_not_fit_is_refused_and_nothing_is_written(method, value, error):
    v = Variable([1.0, 2.0], name="v")
    with pytest.raises(error, match="v:0"):
        getattr(v, method)(value)
    assert v.numpy().tolist() == [1, 2]


def test_python_numbers_take_the_dtype_of_the_variable():
    v = Variable(1, dtype=np.float32)
    v.assign(2)
    v.assign_add(0.5)
    assert v.read_value().dtype == np.float32
    with pytest.raises(TypeError, match=r"Cannot convert 0\.5 to an array of dtype int32"):
        Variable(1, dtype=np.int32).assign(0.5)


def test_a_variable_is_a_value():
    v, w = Variable([1.0, 2.0]), Variable([10.0, 20.0])
    v.assign_add(w)
    v.assign_add(v)
    assert v.numpy().tolist() == [22, 44]


def test_a_shape_with_none_takes_values_of_any_size_there():
    v = Variable(np.ones((2, 3)), shape=(None, 3))
    v.assign(np.zeros((5, 3)))
    assert v.shape == (5, 3)
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign(np.zeros((5, 4)))
    with pytest.raises(ValueError, match="not compatible with the explicitly supplied `shape`"):
        Variable(np.ones(2), shape=(None, 3))


def test_what_is_added_has_the_shape_of_the_value():
    for keywords in ({"shape": (None,)}, {"validate_shape": False}):
        v = Variable([1.0, 2.0], **keywords)
        for delta in ([1.0, 2.0, 3.0], [1.0]):
            with pytest.raises(InvalidArgumentError, match=r"variable with shape \(2,\) using a value with shape"):
                v.assign_add(delta)
        assert v.assign_sub([1.0, 1.0]).numpy().tolist() == [0, 1]
    for method in ("assign_add", "assign_sub"):
        with pytest.raises(InvalidArgumentError, match=r"'Variable:0'.*shape"):
            getattr(Variable([1.0, 2.0]), method)([1.0, 2.0, 3.0])


@pytest.mark.parametrize("value", [True, "a", b"a"])
@pytest.mark.parametrize("method", ["assign_add", "assign_sub"])
def test_only_numbers_are_added(method, value):
    v = Variable(value, name="v")
    with pytest.raises(InvalidArgumentError, match=f"{method} requires numbers, but variable 'v:0' holds "):
        getattr(v, method)(value)
    assert v.numpy() == value


def test_without_validate_shape_any_shape_will_do():
    v = Variable(np.ones(2), validate_shape=False)
    assert v.assign(np.ones((3, 3))).shape == (3, 3)
    assert v.assign(1.0).shape == ()


@pytest.mark.parametrize("value", [True, "text", 3, 1.5, 2j, np.datetime64("2026-01-01")])
def test_every_dtype_without_objects_is_held(value):
    assert Variable(value).numpy() == value
    assert Variable([value]).assign([value]).numpy().tolist() == np.array([value]).tolist()


# --- as an object ----------------------------------------------------------------------------------------------------


def test_its_text_shows_name_shape_dtype_and_value():
    assert repr(Variable([1, 2], dtype="f4", name="v")) == (
        "<ringlet.Variable 'v:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>"
    )
    assert str(Variable(1.5)) == "<ringlet.Variable 'Variable:0' shape=() dtype=float64, numpy=1.5>"


def test_a_deep_copy_is_a_variable_of_its_own_and_a_shallow_one_the_same():
    v = Variable([1.0, 2.0], trainable=False, name="v")
    twin, same = copy.deepcopy([v, v]), copy.copy(v)
    assert twin[0] is twin[1]
    v.assign([5.0, 5.0])
    assert (twin[0].numpy().tolist(), twin[0].name, twin[0].trainable) == ([1, 2], "v:0", False)
    assert same.numpy().tolist() == [5, 5]


def test_pickling_is_refused_with_a_remedy():
    with pytest.raises(TypeError, match=r"cannot pickle variable 'v:0'.*variable.numpy\(\)"):
        pickle.dumps(Variable(1.0, name="v"))


def test_it_goes_as_soon_as_nobody_holds_it():
    v = Variable([1.0])
    gone = weakref.ref(v)
    gc.disable()
    try:
        del v
        assert gone() is None
    finally:
        gc.enable()


def test_subclasses_are_made_by_strategies_only():
    with pytest.raises(TypeError, match=r"MirroredVariable cannot be created directly: call ringlet.Variable"):
        ringlet.values.MirroredVariable(1.0)
