"""What every part of a member's calls is built on."""

from __future__ import annotations

import weakref
from typing import Any, TypeVar

from ringlet import _core

__all__ = ["MemberBase"]

Part = TypeVar("Part")


class MemberBase:
    """One rank of a group, without its calls.

    Parameters
    ----------
    core : _core.Member
        The rank in the core, which keeps its group alive.
    hold : object, optional
        What else the group needs as long as it has a member.

    Attributes
    ----------
    rank : int
        Its position in the group.
    num_ranks : int
        Size of the group.
    """

    __slots__ = ("__weakref__", "_core", "_hold", "_parts", "num_ranks", "rank")

    def __init__(self, core: _core.Member, hold: object = None) -> None:
        self._core = core
        self._hold = hold
        self._parts: weakref.WeakSet[Any] | None = None  # closed together with it
        self.rank = core.rank
        self.num_ranks = core.num_ranks

    def _closed_with_me(self, part: Part) -> Part:
        """Have what this rank is in a part closed together with it; give it back."""
        if self._parts is None:
            self._parts = weakref.WeakSet()
        self._parts.add(part)
        return part

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.rank} of {self.num_ranks}>"
