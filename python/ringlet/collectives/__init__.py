"""Collectives between the ranks of a group, usable without a strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.collectives.communication_options import CollectiveHints, CommunicationImplementation, CommunicationOptions
from ringlet.collectives.group import Group
from ringlet.collectives.member import Member
from ringlet.collectives.message_passing import MessageWork
from ringlet.collectives.op import Algorithm, Op, ReduceOp
from ringlet.collectives.shared_arrays import empty_shared
from ringlet.collectives.single_controller import all_reduce_buffers
from ringlet.collectives.timeouts import default_timeout_seconds
from ringlet.collectives.work import Work
from ringlet.module_names import list_public, load_on_use

if TYPE_CHECKING:
    from ringlet.collectives.process_group import init_process_group

__all__ = [
    "Algorithm",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "Group",
    "Member",
    "MessageWork",
    "Op",
    "ReduceOp",
    "Work",
    "all_reduce_buffers",
    "default_timeout_seconds",
    "empty_shared",
    "init_process_group",
]

# Loaded on first use, because single-process programs do not need the rendezvous.
__getattr__ = load_on_use(__name__, {"init_process_group": "process_group"})
__dir__ = list_public(__name__)
