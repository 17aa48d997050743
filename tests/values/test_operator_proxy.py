"""What stands for another value answers as that value."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from ringlet.values.operator_proxy import StandIn, plain


class Stand(StandIn):
    def __init__(self, value):
        self._value = value

    def _as_operand(self):
        return self._value


BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, divmod, operator.pow,
    operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip
OF_INTEGERS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
UNARY = [operator.neg, operator.pos, abs, bool, int, float, complex, round]


@pytest.mark.parametrize("function", [*BINARY, *OF_INTEGERS])
def test_an_operator_takes_the_value_on_either_side(function):
    expected = function(7, 2)
    assert [function(Stand(7), 2), function(7, Stand(2)), function(Stand(7), Stand(2))] == [expected] * 3


@pytest.mark.parametrize("function", [*UNARY, operator.invert, operator.index])
def test_a_conversion_is_that_of_the_value(function):
    assert function(Stand(7)) == function(7)
    assert type(function(Stand(7))) is type(function(7))


def test_matrices_are_multiplied_on_either_side():
    one, other = np.arange(4.0).reshape(2, 2), np.ones((2, 2))
    for product in (Stand(one) @ other, one @ Stand(other), Stand(one) @ Stand(other)):
        np.testing.assert_array_equal(product, one @ other)


def test_containers_are_counted_indexed_searched_and_gone_through():
    stand = Stand([3, 4])
    assert (len(stand), stand[1], 4 in stand, list(stand)) == (2, 4, True, [3, 4])


def test_rounding_takes_digits():
    assert round(Stand(1.26), 1) == 1.3


def test_only_stand_ins_are_taken_for_others():
    array = np.ones(2)
    assert plain(array) is array
    assert plain(Stand(array)) is array


def test_who_does_not_say_what_it_stands_for_is_named():
    with pytest.raises(NotImplementedError, match="StandIn"):
        StandIn() + 1
