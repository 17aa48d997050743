"""Strategies: how a step function runs on replicas, and how their values are combined."""

from __future__ import annotations

from ringlet.strategy.base import Strategy
from ringlet.strategy.central_storage import CentralStorageStrategy
from ringlet.strategy.cross_device_ops import (
    CrossDeviceOps,
    DirectAllReduce,
    HierarchicalCopyAllReduce,
    NcclAllReduce,
    RingAllReduce,
)
from ringlet.strategy.current import (
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from ringlet.strategy.extended import StrategyExtended
from ringlet.strategy.mirrored import MirroredStrategy
from ringlet.strategy.one_device import OneDeviceStrategy
from ringlet.strategy.reduction_to_one_device import ReductionToOneDevice
from ringlet.strategy.replica_context import ReplicaContext
from ringlet.strategy.run_options import RunOptions
from ringlet.strategy.value_context import ValueContext

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
]
