"""Collectives between the ranks of a group, usable without a strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringlet.collectives.communication_options import CollectiveHints, CommunicationImplementation, CommunicationOptions
from ringlet.collectives.group import Group
from ringlet.collectives.member import Member
from ringlet.collectives.op import Algorithm, Op, ReduceOp
from ringlet.collectives.shared_arrays import empty_shared
from ringlet.collectives.single_controller import all_reduce_buffers
from ringlet.collectives.timeouts import default_timeout_seconds

if TYPE_CHECKING:
    from ringlet.collectives.process_group import init_process_group

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
    "empty_shared",
    "init_process_group",
]


def __getattr__(name: str) -> Any:
    # Loaded on first use: programs of one process need not wait for what finds the others.
    if name != "init_process_group":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    from ringlet.collectives.process_group import init_process_group

    globals()[name] = init_process_group
    return init_process_group
