"""Collectives between the ranks of a group, usable without a strategy."""

from __future__ import annotations

from ringlet.collectives.communication import CollectiveHints, CommunicationImplementation, CommunicationOptions
from ringlet.collectives.controller import all_reduce_buffers
from ringlet.collectives.group import Group
from ringlet.collectives.member import Member
from ringlet.collectives.op import Algorithm, Op, ReduceOp
from ringlet.collectives.options import default_timeout_seconds

__all__ = [
    "Algorithm",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "Group",
    "Member",
    "Op",
    "ReduceOp",
    "all_reduce_buffers",
    "default_timeout_seconds",
]
