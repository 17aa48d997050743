"""Collectives between the ranks of a group, usable without a strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.module_names import list_public, load_on_use

if TYPE_CHECKING:
    from ringlet.collectives.communication_options import CollectiveHints as CollectiveHints
    from ringlet.collectives.communication_options import CommunicationImplementation as CommunicationImplementation
    from ringlet.collectives.communication_options import CommunicationOptions as CommunicationOptions
    from ringlet.collectives.group import Group as Group
    from ringlet.collectives.member import Member as Member
    from ringlet.collectives.message_passing import MessageWork as MessageWork
    from ringlet.collectives.op import Algorithm as Algorithm
    from ringlet.collectives.op import Op as Op
    from ringlet.collectives.op import ReduceOp as ReduceOp
    from ringlet.collectives.process_group import init_process_group as init_process_group
    from ringlet.collectives.shared_arrays import empty_shared as empty_shared
    from ringlet.collectives.single_controller import all_reduce_buffers as all_reduce_buffers
    from ringlet.collectives.timeouts import default_timeout_seconds as default_timeout_seconds
    from ringlet.collectives.work import Work as Work

# Public name -> module below ringlet.collectives that defines it.
_PUBLIC = {
    "Algorithm": "op",
    "CollectiveHints": "communication_options",
    "CommunicationImplementation": "communication_options",
    "CommunicationOptions": "communication_options",
    "Group": "group",
    "Member": "member",
    "MessageWork": "message_passing",
    "Op": "op",
    "ReduceOp": "op",
    "Work": "work",
    "all_reduce_buffers": "single_controller",
    "default_timeout_seconds": "timeouts",
    "empty_shared": "shared_arrays",
    "init_process_group": "process_group",
}
__all__ = list(_PUBLIC)

__getattr__ = load_on_use(__name__, _PUBLIC)
__dir__ = list_public(__name__)
