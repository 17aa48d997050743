"""A Mirrored behaves as the value that all replicas have."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.context import Mode, Scope
from ringlet.values import Mirrored

BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    divmod,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
numbers = st.integers(1, 9)


@pytest.mark.parametrize("function", [*BINARY, *BITS, operator.pow])
@given(x=numbers, y=numbers)
def test_operators_give_what_the_values_give(function, x, y):
    expected = function(x, y)
    assert function(Mirrored([x, x]), y) == expected
    assert function(x, Mirrored([y, y])) == expected
    assert function(Mirrored([x, x]), Mirrored([y, y])) == expected


@pytest.mark.parametrize("function", [operator.neg, operator.pos, abs, operator.invert, bool, int, float, complex, hex])
def test_conversions_give_what_the_value_gives(function):
    assert function(Mirrored([-5, -5])) == function(-5)


@pytest.mark.parametrize("function", [len, list, sum, lambda v: v[1:], lambda v: 2 in v, lambda v: v @ v])
def test_containers_give_what_the_value_gives(function):
    array = np.array([1, 2, 3])
    np.testing.assert_array_equal(function(Mirrored([array, array])), function(array))


def test_arrays_take_it_for_its_value():
    value = Mirrored([np.array([1.0, 2.0])] * 2)
    assert (np.ones(2) + value).tolist() == [2, 3]
    assert (value * np.ones(2)).tolist() == [1, 2]
    assert np.sum(value) == 3


def test_attributes_are_those_of_the_value():
    value = Mirrored([np.zeros((2, 3), np.float32)])
    assert (value.shape, value.dtype, value.sum()) == ((2, 3), np.float32, 0)
    with pytest.raises(AttributeError, match="nothing"):
        value.nothing  # noqa: B018


def test_results_are_plain_values():
    assert type(Mirrored([1]) + 1) is int


def test_rounding_and_formatting_give_what_the_value_gives():
    value = Mirrored([1.26])
    assert (round(value), round(value, 1), f"{value:.1f}") == (1, 1.3, "1.3")
    assert f"{value}" == str(value)


def test_outside_of_replicas_it_is_its_first_component():
    assert Mirrored([1, 2]) + 0 == 1


def test_inside_of_a_replica_it_is_that_replicas_component():
    with Scope(Mode("strategy", 1)):
        assert Mirrored([1, 2]) + 0 == 2
