"""What every part of a member's calls is built on."""

from __future__ import annotations

from ringlet import _core

__all__ = ["MemberBase"]


class MemberBase:
    """One rank of a group, without its calls.

    Parameters
    ----------
    core : _core.Member
        The rank in the core, which keeps its group alive.

    Attributes
    ----------
    rank : int
        Its position in the group.
    num_ranks : int
        Size of the group.
    """

    __slots__ = ("_core", "num_ranks", "rank")

    def __init__(self, core: _core.Member) -> None:
        self._core = core
        self.rank = core.rank
        self.num_ranks = core.num_ranks

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.rank} of {self.num_ranks}>"
