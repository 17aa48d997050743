"""What every part of a member's calls is built on."""

from __future__ import annotations

import weakref
from typing import Any, TypeVar

from ringlet import _core

__all__ = ["MemberBase"]

Made = TypeVar("Made")


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

    __slots__ = ("__weakref__", "_core", "_hold", "_made", "num_ranks", "rank")

    def __init__(self, core: _core.Member, hold: object = None) -> None:
        self._core = core
        self._hold = hold
        self._made: weakref.WeakSet[Any] | None = None  # the parts and plans that end with it
        self.rank = core.rank
        self.num_ranks = core.num_ranks

    def _end_with_me(self, made: Made) -> Made:
        """Have a part or a plan of this rank closed together with it; give it back."""
        if self._made is None:
            self._made = weakref.WeakSet()
        self._made.add(made)
        return made

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.rank} of {self.num_ranks}>"
