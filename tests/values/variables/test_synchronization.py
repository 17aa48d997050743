"""Synchronizations and aggregations are the members that TensorFlow has, and nothing else."""

from __future__ import annotations

import pytest

from ringlet import VariableAggregation, VariableSynchronization
from ringlet.values.variables.synchronization import check_aggregation, check_synchronization


def test_members_have_tensorflow_s_numbers():
    assert {m.name: m.value for m in VariableSynchronization} == {"AUTO": 0, "NONE": 1, "ON_WRITE": 2, "ON_READ": 3}
    assert {m.name: m.value for m in VariableAggregation} == {"NONE": 0, "SUM": 1, "MEAN": 2, "ONLY_FIRST_REPLICA": 3}


@pytest.mark.parametrize("value", ["SUM", 1, VariableSynchronization.ON_READ])
def test_what_is_no_aggregation_is_refused_with_those_that_are(value):
    with pytest.raises(ValueError, match=r"Invalid variable aggregation mode: .* for variable: v.*ringlet.*ONLY_FIRST"):
        check_aggregation(value, "v")


@pytest.mark.parametrize("value", ["ON_READ", None, 3, VariableAggregation.SUM])
def test_what_is_no_synchronization_is_refused_with_those_that_are(value):
    with pytest.raises(ValueError, match=r"Invalid variable synchronization mode: .* for variable: v.*ON_WRITE"):
        check_synchronization(value, "v")


def test_none_is_the_aggregation_none():
    assert check_aggregation(None, "v") is VariableAggregation.NONE
