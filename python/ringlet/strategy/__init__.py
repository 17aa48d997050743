"""Strategies: how a step function runs on replicas, and how their values are combined."""

from __future__ import annotations

from ringlet.strategy.base import Strategy
from ringlet.strategy.current import (
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from ringlet.strategy.extended import StrategyExtended
from ringlet.strategy.mirrored import MirroredStrategy
from ringlet.strategy.replica_context import ReplicaContext
from ringlet.strategy.value_context import ValueContext

__all__ = [
    "MirroredStrategy",
    "ReplicaContext",
    "Strategy",
    "StrategyExtended",
    "ValueContext",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]
