"""Closing the member of a group."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from ringlet.collectives.argument_parsing import as_text
from ringlet.collectives.member_base import MemberBase
from ringlet.errors import FailedPreconditionError
from ringlet.errors.exception_notes import class_and_text

if TYPE_CHECKING:
    from ringlet.rendezvous.connected_group import ConnectedGroup

Self = TypeVar("Self", bound="Shutdown")


class ProcessShare(Protocol):
    """Interface of the resources that the members of one process share."""

    connected: ConnectedGroup | None

    def abort(self, reason: str) -> None:
        """Make all ranks raise `CollectiveAborted`."""


class Shutdown(MemberBase):
    """Mixin of members that closes them, explicitly or as a context manager."""

    __slots__ = ()

    def close(self) -> None:
        """Leave the group and release the resources of this rank.

        Other ranks can complete the calls that this rank has made; their later calls that need this rank raise
        `CollectiveMismatchError`. Later calls on this member, its plans and its new groups
        (:meth:`~Member.split`) raise `FailedPreconditionError`. Results stay valid as long as arrays refer to them.
        Closing a closed member has no effect.

        Asynchronous calls that have not begun raise `FailedPreconditionError`; a call that has begun is completed.

        A process that ends without closing its members counts as lost: other ranks raise `WorkerLostError`.

        Raises
        ------
        FailedPreconditionError
            If asynchronous calls are not done; the message names them. The member is closed nevertheless.

        Examples
        --------
        >>> import ringlet
        >>> member = ringlet.collectives.Group(2).member(1)
        >>> member.close()
        >>> member.barrier()
        Traceback (most recent call last):
        ringlet.errors.FailedPreconditionError: rank 1 has closed its group: make no calls after close(), ...
        """
        unfinished = self._close()
        if unfinished:
            raise FailedPreconditionError(
                f"rank {self.rank} closed its group while asynchronous calls ran: {', '.join(unfinished)}. Call wait() "
                "on each before close() or the end of the with block."
            )

    def _close(self, seconds: float = 0) -> list[str]:
        """Close the member once its messages are sent, or after `seconds`; return the unfinished calls."""
        unfinished = [name for part in list(self._parts or ()) for name in part._close()]
        if self._queue is not None:
            unfinished += self._queue.close()
        if self._core.close("closed its group"):
            unfinished += self._inboxes.close(self.rank, seconds)
            connected = None if self._hold is None else cast(ProcessShare, self._hold).connected
            self._hold = None  # the last member of a process releases the shared resources
            if connected is not None:
                connected.wait()
        return unfinished

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the member; after an exception, except an exit with status 0, first abort the process group."""
        if error is None:
            self.close()
            return
        if self._hold is not None and not (isinstance(error, SystemExit) and error.code in (None, 0)):
            cast(ProcessShare, self._hold).abort(f"rank {self.rank} raised {as_text(class_and_text(error))}")
        self._close()  # does not raise: an error about asynchronous calls would hide the exception
