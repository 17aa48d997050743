"""Requests for variables keep what was asked; specs keep what was decided."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ringlet.values.synchronization import VariableAggregation, VariableSynchronization
from ringlet.values.variable_spec import VariableRequest, VariableSpec


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


def test_a_spec_cannot_be_changed_and_is_renamed_as_another_one():
    spec = spec_of(VariableRequest(1.5, name="v"))
    assert (spec.renamed("w").name, spec.name) == ("w:0", "v:0")
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.name = "w:0"
