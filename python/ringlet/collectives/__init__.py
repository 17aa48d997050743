"""Collectives between the ranks of a group, usable without a strategy."""

from __future__ import annotations

from ringlet.collectives.controller import all_reduce_buffers
from ringlet.collectives.cross_device_ops import CrossDeviceOps, DirectAllReduce, RingAllReduce
from ringlet.collectives.group import Group
from ringlet.collectives.member import Member
from ringlet.collectives.op import Algorithm, Op, ReduceOp
from ringlet.collectives.options import default_timeout_seconds

__all__ = [
    "Algorithm",
    "CrossDeviceOps",
    "DirectAllReduce",
    "Group",
    "Member",
    "Op",
    "ReduceOp",
    "RingAllReduce",
    "all_reduce_buffers",
    "default_timeout_seconds",
]
