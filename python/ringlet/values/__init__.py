"""Distributed values and variables: what a value is while it belongs to several replicas."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ringlet.values.distributed_values import DistributedValues
from ringlet.values.mirrored_value import Mirrored
from ringlet.values.per_replica import PerReplica
from ringlet.values.regroup import as_variables, leaf_columns, regroup
from ringlet.values.select_replica import check_components, select_replica, split_arguments

if TYPE_CHECKING:
    from ringlet.values.indexed_slices import IndexedSlices
    from ringlet.values.variables.aggregating_variable import AggregatingVariable
    from ringlet.values.variables.distributed_variable import DistributedVariable, MirroredVariable, SyncOnReadVariable
    from ringlet.values.variables.row_lookup import embedding_lookup
    from ringlet.values.variables.sharded_variable import ShardedVariable
    from ringlet.values.variables.synchronization import VariableAggregation, VariableSynchronization
    from ringlet.values.variables.variable import Variable

__all__ = [
    "AggregatingVariable",
    "DistributedValues",
    "DistributedVariable",
    "IndexedSlices",
    "Mirrored",
    "MirroredVariable",
    "PerReplica",
    "ShardedVariable",
    "SyncOnReadVariable",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "as_variables",
    "check_components",
    "embedding_lookup",
    "leaf_columns",
    "regroup",
    "select_replica",
    "split_arguments",
]

# What is loaded on first use, because programs without variables need not wait for it: its module.
_VARIABLES = {
    "AggregatingVariable": "variables.aggregating_variable",
    "DistributedVariable": "variables.distributed_variable",
    "IndexedSlices": "indexed_slices",
    "MirroredVariable": "variables.distributed_variable",
    "ShardedVariable": "variables.sharded_variable",
    "SyncOnReadVariable": "variables.distributed_variable",
    "Variable": "variables.variable",
    "VariableAggregation": "variables.synchronization",
    "VariableSynchronization": "variables.synchronization",
    "embedding_lookup": "variables.row_lookup",
}


def __getattr__(name: str) -> Any:
    if name not in _VARIABLES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_VARIABLES[name]}"), name)
    globals()[name] = value
    return value
