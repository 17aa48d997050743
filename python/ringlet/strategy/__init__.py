"""Strategies, which run a step function on replicas and combine the values of replicas."""

from __future__ import annotations

from ringlet.strategy.api.central_storage_strategy import CentralStorageStrategy
from ringlet.strategy.api.cross_device_ops import (
    CrossDeviceOps,
    DirectAllReduce,
    HierarchicalCopyAllReduce,
    NcclAllReduce,
    RingAllReduce,
)
from ringlet.strategy.api.current_strategy import (
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
    replica_context,
    set_strategy,
)
from ringlet.strategy.api.extended import StrategyExtended
from ringlet.strategy.api.mirrored_strategy import MirroredStrategy
from ringlet.strategy.api.one_device_strategy import OneDeviceStrategy
from ringlet.strategy.api.reduction_to_one_device import ReductionToOneDevice
from ringlet.strategy.api.strategy import Strategy
from ringlet.strategy.calls.run_options import RunOptions
from ringlet.strategy.calls.value_context import ValueContext
from ringlet.strategy.replica.replica_context import ReplicaContext

__all__ = [
    "CentralStorageStrategy",
    "CrossDeviceOps",
    "DirectAllReduce",
    "HierarchicalCopyAllReduce",
    "MirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ReductionToOneDevice",
    "ReplicaContext",
    "RingAllReduce",
    "RunOptions",
    "Strategy",
    "StrategyExtended",
    "ValueContext",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "replica_context",
    "set_strategy",
]
