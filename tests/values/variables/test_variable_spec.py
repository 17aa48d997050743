"""Requests for variables keep what was asked; specs keep what was decided."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ringlet import Variable
from ringlet.values.variables.synchronization import VariableAggregation, VariableSynchronization
from ringlet.values.variables.variable_spec import VariableRequest, VariableSpec


def spec_of(request):
    return VariableSpec.of(request, request.first_value(), VariableSynchronization.AUTO, VariableAggregation.NONE)


@pytest.mark.parametrize(
    ("request_", "shape", "is_static"),  # request, shape that values must have, whether it never changes
    [
        (VariableRequest(np.ones((2, 3))), (2, 3), True),
        (VariableRequest(np.ones((2, 3)), shape=[2, 3]), (2, 3), True),
        (VariableRequest(np.ones((2, 3)), shape=(None, 3)), (None, 3), False),
        (VariableRequest(np.ones((2, 3)), validate_shape=False), None, False),
        (VariableRequest(1.5), (), True),
    ],
)
def test_the_shape_of_values_is_that_of_the_first_one_unless_more_is_allowed(request_, shape, is_static):
    spec = spec_of(request_)
    assert (spec.shape, spec.is_static) == (shape, is_static)


def test_a_shape_is_a_size_or_several():
    assert Variable([1.0, 2.0], shape=2).shape == (2,)
    assert spec_of(VariableRequest([1.0, 2.0], shape=[None])).shape == (None,)
    for shape in ("ab", 1.5, (2, "a")):
        with pytest.raises(TypeError, match=r"shape of variable v is .* tuple of sizes, .* shape=\(3, None\)"):
            Variable([1.0, 2.0], name="v", shape=shape)


@pytest.mark.parametrize(("given", "name"), [(None, "Variable:0"), ("", ":0"), ("a/b", "a/b:0"), ("scope/", "scope:0")])
def test_the_name_of_a_variable_is_the_one_that_was_given(given, name):
    assert Variable(1.0, name=given).name == name


def test_a_name_is_text():
    with pytest.raises(ValueError, match=r"must be a string, got 3"):
        Variable(1.0, name=3)


def test_a_constraint_that_cannot_be_called_is_refused():
    with pytest.raises(ValueError, match=r"`constraint` must be None or a callable. Got a <class 'int'>: 5"):
        Variable(1.0, constraint=5)
    assert Variable(1.0, constraint=abs).constraint is abs


def test_a_spec_cannot_be_changed_and_is_renamed_as_another_one():
    spec = spec_of(VariableRequest(1.5, name="v"))
    assert (spec.renamed("w").name, spec.name) == ("w:0", "v:0")
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.name = "w:0"
