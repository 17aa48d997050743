"""Common base class of the mixins of a member."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ringlet import _core

if TYPE_CHECKING:
    from ringlet.collectives.operation_queue import OperationQueue
    from ringlet.ipc.inbox import Inbox

Part = TypeVar("Part")


class Inboxes(Protocol):
    """Interface to the inboxes of a group's ranks in one process."""

    seconds: float

    def __call__(self, rank: int) -> Inbox:
        """Return the inbox of a rank."""

    def failure(self, text: str) -> Exception:
        """Return the error for a failure of the group with this text."""

    def close(self, rank: int, seconds: float = 0) -> list[str]:
        """Close the inbox of `rank` once its messages are sent, or after `seconds`; return unfinished operations."""

    def open_part(self) -> Inbox:
        """Return an inbox for this rank as a member of a new subgroup.

        The inbox is open before the split, so that other ranks can send to it as soon as the split is complete.
        """

    def join_part(self, inbox: Inbox, rank: int, ranks: Sequence[int], labels: Sequence[int]) -> Inboxes:
        """Return the inboxes of a subgroup.

        `rank` is this rank's number in the subgroup. For each member, `ranks` has its rank in this group, and `labels`
        the label of its inbox.
        """


class MemberBase:
    """Base class of the mixins of :class:`~ringlet.collectives.Member`: one rank of a group, without collectives.

    Parameters
    ----------
    core : _core.Member
        The rank in the core; keeps its group alive.
    inboxes : Inboxes
        Messages of the ranks of this process.
    hold : object, optional
        Object to keep alive until this member is closed or freed.

    Attributes
    ----------
    rank : int
        Position in the group.
    num_ranks : int
        Size of the group.
    """

    __slots__ = ("__weakref__", "_core", "_hold", "_inboxes", "_parts", "_queue", "num_ranks", "rank")

    def __init__(self, core: _core.Member, inboxes: Inboxes, hold: object = None) -> None:
        self._core = core
        self._hold = hold
        self._inboxes = inboxes
        self._parts: weakref.WeakSet[Any] | None = None  # closed together with this member
        self._queue: OperationQueue | None = None  # created by the first asynchronous call
        self.rank: int = core.rank
        self.num_ranks: int = core.num_ranks

    def _close_with_self(self, part: Part) -> Part:
        """Register a member of a subgroup, to be closed together with this member; return it."""
        if self._parts is None:
            self._parts = weakref.WeakSet()
        self._parts.add(part)
        return part

    def _operations(self) -> OperationQueue:
        if self._queue is None:
            from ringlet.collectives.operation_queue import OperationQueue

            self._queue = OperationQueue(self._core.group, self.rank)
            self._core.set_gate(self._queue.wait_for_turn)
            weakref.finalize(self, self._queue.close).atexit = False
        return self._queue

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.rank} of {self.num_ranks}>"
