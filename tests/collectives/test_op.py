"""Operations of strategies, and those that aggregations of variables stand for."""

from __future__ import annotations

import pytest

import ringlet
from ringlet import ReduceOp, VariableAggregation


def test_aggregations_that_combine_values_are_operations():
    assert ReduceOp.from_variable_aggregation(VariableAggregation.SUM) is ReduceOp.SUM
    assert ReduceOp.from_variable_aggregation(VariableAggregation.MEAN) is ReduceOp.MEAN


@pytest.mark.parametrize(
    "aggregation", [VariableAggregation.NONE, VariableAggregation.ONLY_FIRST_REPLICA, None, "SUM", 1], ids=repr
)
def test_other_aggregations_are_none(aggregation):
    with pytest.raises(ValueError, match=r"Could not convert from `tf\.VariableAggregation`"):
        ringlet.ReduceOp.from_variable_aggregation(aggregation)
