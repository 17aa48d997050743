"""How a rank leaves its group for good."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from ringlet.collectives.argument_parsing import as_text
from ringlet.collectives.member_base import MemberBase

if TYPE_CHECKING:
    from ringlet.rendezvous.membership import Meeting

__all__ = ["Closing", "Shared"]

Self = TypeVar("Self", bound="Closing")


class Shared(Protocol):
    """What the members that one process has of a group hold together."""

    meeting: Meeting | None

    def abort(self, reason: str) -> None:
        """Make all ranks raise `CollectiveAborted`."""


class Closing(MemberBase):
    """A rank that can leave its group; also a context manager that does."""

    __slots__ = ()

    def close(self) -> None:
        """Leave the group, and give back what this rank has of it.

        The other ranks may end the calls that this one has made. A call that waits for this rank, now or later, raises
        `CollectiveMismatchError` there. Here every call raises `FailedPreconditionError`, and so do the plans and parts
        (:meth:`~Member.split`) that this member has made. Results stay valid as long as there are arrays over them. To
        close a member again does nothing.

        A process that ends without this counts as lost, whatever its exit status: the others raise `WorkerLostError`.

        Examples
        --------
        >>> import ringlet
        >>> member = ringlet.collectives.Group(2).member(1)
        >>> member.close()
        >>> member.barrier()
        Traceback (most recent call last):
        ringlet.errors.FailedPreconditionError: rank 1 has closed its group: make no calls after close(), ...
        """
        for part in list(self._parts or ()):
            part.close()
        if not self._core.close("closed its group"):
            return
        meeting = None if self._hold is None else cast(Shared, self._hold).meeting
        self._hold = None  # the last member of a process gives back what they share
        if meeting is not None:
            meeting.wait()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; after an exception have the other ranks of a group of processes raise `CollectiveAborted`."""
        has_failed = error is not None and not (isinstance(error, SystemExit) and error.code in (None, 0))
        if has_failed and self._hold is not None:
            cast(Shared, self._hold).abort(f"rank {self.rank} raised {as_text(_described(error))}")
        self.close()


def _described(error: BaseException | None) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
