"""Distributed values and variables: what a value is while it belongs to several replicas."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ringlet.values.base import DistributedValues
from ringlet.values.grouping import as_variables, leaf_columns, regroup
from ringlet.values.mirrored import Mirrored
from ringlet.values.per_replica import PerReplica
from ringlet.values.splitting import check_components, select_replica, split_arguments

if TYPE_CHECKING:
    from ringlet.values.aggregating_variable import AggregatingVariable
    from ringlet.values.distributed_variable import DistributedVariable, MirroredVariable, SyncOnReadVariable
    from ringlet.values.indexed_slices import IndexedSlices
    from ringlet.values.rows import embedding_lookup
    from ringlet.values.sharded_variable import ShardedVariable
    from ringlet.values.synchronization import VariableAggregation, VariableSynchronization
    from ringlet.values.variable import Variable

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
    "AggregatingVariable": "aggregating_variable",
    "DistributedVariable": "distributed_variable",
    "IndexedSlices": "indexed_slices",
    "MirroredVariable": "distributed_variable",
    "ShardedVariable": "sharded_variable",
    "SyncOnReadVariable": "distributed_variable",
    "Variable": "variable",
    "VariableAggregation": "synchronization",
    "VariableSynchronization": "synchronization",
    "embedding_lookup": "rows",
}


def __getattr__(name: str) -> Any:
    if name not in _VARIABLES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_VARIABLES[name]}"), name)
    globals()[name] = value
    return value
