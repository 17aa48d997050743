"""Distributed values: what a value is while it belongs to several replicas."""

from __future__ import annotations

from ringlet.values.base import DistributedValues
from ringlet.values.grouping import check_components, regroup, select_replica, split_arguments
from ringlet.values.mirrored import Mirrored
from ringlet.values.per_replica import PerReplica

__all__ = [
    "DistributedValues",
    "Mirrored",
    "PerReplica",
    "check_components",
    "regroup",
    "select_replica",
    "split_arguments",
]
