"""Distributed values and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.module_names import list_public, load_on_use
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

# Lazily loaded names and their modules: programs without variables do not need them.
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


__getattr__ = load_on_use(__name__, _VARIABLES)
__dir__ = list_public(__name__)
