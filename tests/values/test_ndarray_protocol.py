"""A variable stands for its value in expressions, and results are plain arrays."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringlet
from ringlet import Variable

ARITHMETIC = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    divmod,
]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
numbers = st.integers(1, 5)
strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])


def mirrored(value):
    with strategy.scope():
        return Variable(value)


@pytest.mark.parametrize("function", [*ARITHMETIC, *COMPARISONS, *BITS])
@pytest.mark.parametrize("make", [Variable, mirrored])
@given(x=numbers, y=numbers)
def test_operators_give_what_the_values_give_with_variables_on_either_side(make, function, x, y):
    one, other = np.array([x, y]), np.array([y, x])
    expected = function(one, other)
    for found in (function(make(one), other), function(one, make(other)), function(make(one), make(other))):
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(function(make(one), y), function(one, y))
    np.testing.assert_array_equal(function(x, make(other)), function(x, other))


@pytest.mark.parametrize("function", [operator.neg, operator.pos, abs, operator.invert])
def test_unary_operators_give_what_the_value_gives(function):
    np.testing.assert_array_equal(function(Variable([-5, 3])), function(np.array([-5, 3])))


@pytest.mark.parametrize("function", [bool, int, float, complex, hex, round, lambda v: range(8)[v]])
def test_conversions_of_a_variable_without_dimensions_give_what_its_value_gives(function):
    assert function(Variable(5)) == function(5)


@pytest.mark.parametrize(
    "function", [len, list, sum, lambda v: v[1:], lambda v: v[v > 1], lambda v: 2.0 in v, lambda v: v @ v, reversed]
)
def test_containers_give_what_the_value_gives(function):
    array = np.array([1.0, 2.0, 3.0])
    found, expected = function(Variable(array)), function(array)
    np.testing.assert_array_equal(
        list(np.atleast_1d(list(found) if function is reversed else found)),
        list(np.atleast_1d(list(expected) if function is reversed else expected)),
    )


@pytest.mark.parametrize(
    "function",
    [
        np.sum,
        np.mean,
        np.exp,
        np.sort,
        np.shape,
        np.linalg.norm,
        np.argmax,
        lambda x: np.add(x, 1),
        np.add.reduce,
        lambda x: np.concatenate([x, x]),
        lambda x: np.where(x > 2, x, 0),
        lambda x: np.stack([x, np.ones(3)]),
        lambda x: np.dot(x, x),
        lambda x: np.einsum("i,i->", x, x),
        lambda x: np.multiply.outer(x, x),
        lambda x: np.clip(x, 1.5, 2.5),
        lambda x: np.modf(x)[0],
        lambda x: np.array(x, np.float32),
        lambda x: np.array([x, x]),
    ],
)
@pytest.mark.parametrize("make", [Variable, mirrored])
def test_numpy_s_functions_take_it_for_its_value(make, function):
    array = np.array([1.0, 3.0, 2.0])
    found = function(make(array))
    assert type(found) is type(function(array))
    np.testing.assert_array_equal(found, function(array))


def test_a_function_writes_to_an_array_and_never_to_a_variable():
    v, out = Variable([1.0, 2.0]), np.zeros(2)
    assert np.add(v, v, out=out) is out
    out += v
    assert out.tolist() == [3, 6]
    with pytest.raises(TypeError, match=r"np.add cannot write to a variable.*assign"):
        np.add(out, 1, out=v)


@pytest.mark.parametrize("make", [Variable, mirrored])
def test_a_function_at_some_elements_never_writes_to_a_variable(make):
    v, array = make([1.0, 2.0]), np.zeros(2)
    with pytest.raises(TypeError, match=r"np.add.at cannot write to a variable.*scatter_add"):
        np.add.at(v, [0], 1)
    assert v.numpy().tolist() == [1, 2]
    np.add.at(array, [0, 1], v)
    assert array.tolist() == [1, 2]


def test_an_array_made_of_it_is_a_copy_only_where_a_copy_is_asked_for():
    v = Variable([1.0, 2.0])
    assert not np.asarray(v).flags.writeable
    assert np.array(v).flags.writeable
    assert np.shares_memory(np.asarray(v), v.read_value())
    assert not np.shares_memory(np.array(v), v.read_value())
    assert np.asarray(v, np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="without a copy"):
        v.__array__(np.float32, copy=False)


def test_equality_is_that_of_the_elements():
    v = Variable([1.0, 2.0])
    assert (v == [1.0, 3.0]).tolist() == [True, False]
    assert (v != Variable(v)).tolist() == [False, False]
    assert (v == None, v != None) == (False, True)  # noqa: E711
    assert (v == np.ones(3), v != np.ones(3)) == (False, True)


@pytest.mark.parametrize("make", [Variable, mirrored])
def test_it_is_unhashable_and_its_reference_is_a_key(make):
    v = make(1.5)
    with pytest.raises(TypeError, match=r"unhashable.*variable.ref\(\)"):
        hash(v)
    table = {v.ref(): "v", make(1.5).ref(): "other"}
    assert table[v.ref()] == "v"
    assert v.ref() == v.ref() != make(1.5).ref()
    assert v.ref().deref() is v


IN_PLACE = [
    operator.iadd,
    operator.isub,
    operator.imul,
    operator.imatmul,
    operator.itruediv,
    operator.ifloordiv,
    operator.imod,
    operator.ipow,
]


@pytest.mark.parametrize("function", IN_PLACE)
@pytest.mark.parametrize("make", [Variable, mirrored])
def test_in_place_operators_are_refused_with_both_things_they_could_mean(make, function):
    v = make([1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"not supported.*variable\.assign.*variable = variable"):
        function(v, 1.0)
    assert v.numpy().tolist() == [1, 2]


def test_item_assignment_is_refused_with_a_remedy():
    v = Variable([1.0, 2.0])
    with pytest.raises(TypeError, match=r"does not support item assignment.*scatter_update"):
        v[0] = 5.0


def test_text_of_a_number_is_formatted_as_the_number():
    assert f"{Variable(1.5):.3f}" == "1.500"
    assert f"{Variable(1.5, name='v')}" == "<ringlet.Variable 'v:0' shape=() dtype=float64, numpy=1.5>"


def test_bfloat16_variables_compute():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    v = Variable([1.0, 2.0], dtype=ml_dtypes.bfloat16)
    assert (v + v).dtype == ml_dtypes.bfloat16
    v.assign_add([1.0, 1.0])
    v.assign_sub(np.array([0.5, 0.5], ml_dtypes.bfloat16))
    assert v.numpy().astype(float).tolist() == [1.5, 2.5]
    assert (
        f"{v!r}" == "<ringlet.Variable 'Variable:0' shape=(2,) dtype=bfloat16, numpy=array([1.5, 2.5], dtype=bfloat16)>"
    )


def test_functions_of_numpy_read_variables_at_any_depth_and_give_plain_arrays():
    one, two = Variable([3.0, 1.0]), mirrored([2.0, 4.0])
    found = np.concatenate([one, (two, [5.0])[0]])
    assert type(found) is np.ndarray
    assert found.tolist() == [3, 1, 2, 4]
    assert type(np.mean(one)) is np.float64
    assert np.clip(one, a_min=two, a_max=None).tolist() == [3, 4]
    with pytest.raises(ValueError, match="read-only"):
        np.copyto(one, 1.0)
