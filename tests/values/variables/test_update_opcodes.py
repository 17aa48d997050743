"""A sum takes values of its own shape alone, overflows silently, and every change has the name of its method."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet import Variable
from ringlet.errors import InvalidArgumentError
from ringlet.values.variables.update_opcodes import NAMES, assign_add, assign_sub


@pytest.mark.parametrize(("change", "expected"), [(assign_add, [11, 22]), (assign_sub, [-9, -18])])
def test_a_change_goes_into_other_memory_or_into_the_same(change, expected):
    old, new = np.array([1, 2]), np.zeros(2, np.int64)
    change(old, np.array([10, 20]), new)
    assert (old.tolist(), new.tolist()) == ([1, 2], expected)
    change(old, np.array([10, 20]), old)
    assert old.tolist() == expected


@pytest.mark.parametrize("change", [assign_add, assign_sub])
@pytest.mark.parametrize("value", [np.ones(1), np.ones((2, 2)), np.float64(1), 1.0])
def test_a_value_of_another_shape_is_refused_and_changes_nothing(change, value):
    old = np.array([1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match=r"shape \(2,\) using a value with shape .*np\.broadcast_to"):
        change(old, value, old)
    assert old.tolist() == [1, 2]


@pytest.mark.parametrize(("change", "value"), [(assign_add, 1e308), (assign_sub, -1e308)])
def test_what_overflows_is_infinite_whatever_numpy_was_told(change, value):
    total = np.array([1e308, 1.0])
    with np.errstate(all="raise"):
        change(total, np.array([value, 0.0]), total)
    assert total.tolist() == [np.inf, 1]


def test_messages_call_a_change_what_its_method_is_called():
    methods = {name for name in dir(Variable) if name.startswith(("assign", "scatter_"))}
    assert sorted(NAMES.values()) == sorted(methods)
