"""The side of the rendezvous that has rank 0: waits until every rank has come, and connects each process to each."""

from __future__ import annotations

import contextlib
import os
import socket

from ringlet import _core
from ringlet.errors import DeadlineExceededError, FailedPreconditionError, WorkerLostError
from ringlet.ipc.deadline import Deadline
from ringlet.ipc.unix_sockets import open_pidfd
from ringlet.rendezvous.handshake import Hello, held_by
from ringlet.rendezvous.job_key import MOST_PROCESSES, Job
from ringlet.rendezvous.late_arrivals import Guard
from ringlet.rendezvous.listener import Reception, Visitor, refuse
from ringlet.rendezvous.membership import Meeting
from ringlet.rendezvous.messages import Message, Unreadable, receive, send
from ringlet.rendezvous.peer_sockets import Introductions, Seat
from ringlet.rendezvous.rendezvous_errors import missing_text

__all__ = ["Gathering"]


class Gathering:
    """Everything between the first and the last process that comes.

    Parameters
    ----------
    job : Job
        Whose processes these are.
    ours : Hello
        What this process says.
    listener : socket
        Taken over.
    """

    def __init__(self, job: Job, ours: Hello, listener: socket.socket) -> None:
        self._job = job
        self._ours = ours
        self._reception = Reception(listener, ours.version)
        self._seats: list[Seat] = []
        self._left: set[int] = set()  # ranks that came and gave up
        self._notes: list[str] = []  # what time-outs say about who came and went

    def gather(self, deadline: Deadline) -> Meeting:
        """Wait for all ranks.

        Raises
        ------
        DeadlineExceededError
            If some did not come; names them.
        WorkerLostError
            If a process that had come ended.
        FailedPreconditionError
            If they are too many processes.
        OSError
            If this process has no descriptor left.
        """
        try:
            while self._missing():
                if deadline.is_over():
                    raise DeadlineExceededError(self._why_not(deadline))
                visitors, ready = self._reception.poll(deadline.left(1.0))
                for visitor in visitors:
                    self._seat(visitor)
                for seat in [seat for seat in self._seats if seat.connection in ready]:
                    self._hear(seat)
            self._seats.sort(key=lambda seat: seat.hello.ranks)
            meeting = Introductions(self._job, self._ours, self._seats, deadline).make()
            self._guard(meeting)
        except WorkerLostError as error:
            self._give_up({"kind": "lost", "reason": error.reason, "rank": error.rank, "pid": error.pid})
            raise
        except DeadlineExceededError as error:
            self._give_up({"kind": "late", "message": str(error)})
            raise
        except FailedPreconditionError as error:
            self._give_up({"kind": "refused", "reason": str(error), "may_retry": False})
            raise
        except OSError as error:
            reason = f"could not go on: {error}"
            self._give_up({"kind": "lost", "reason": reason, "rank": 0, "pid": self._ours.identity.pid})
            raise
        except BaseException as error:
            self._give_up({"kind": "leaving", "why": f"was interrupted by {type(error).__name__}"})
            raise
        return meeting

    # --- who comes, and who goes --------------------------------------------------------------------------------------

    def _present(self) -> set[int]:
        return {*self._ours.ranks}.union(*(seat.hello.ranks for seat in self._seats))

    def _missing(self) -> set[int]:
        return {*range(self._job.num_ranks)} - self._present()

    def _came(self) -> set[int]:
        """The ranks that time-outs do not blame: also those that gave up, unless nobody else is missing."""
        came = self._present() | self._left
        return came if len(came) < self._job.num_ranks else self._present()

    def _seat(self, visitor: Visitor) -> None:
        reason = self._ours.objection_to(visitor.hello, visitor.pid, self._job) or self._already_here(visitor.hello)
        if reason is not None:
            self._notes.append(f"{reason.split(': ')[0]}, and was sent away")
            refuse(visitor.connection, reason)
            return
        pid = visitor.hello.identity.pid
        self._seats.append(Seat(visitor.hello, visitor.connection, _core.Pidfd(open_pidfd(visitor.connection), pid)))
        self._reception.watch(visitor.connection)
        if 1 + len(self._seats) + bool(self._missing()) > MOST_PROCESSES:
            raise FailedPreconditionError(
                f"{self._job} has more than {MOST_PROCESSES} processes: give each of them more ranks, with ranks=."
            )
        self._tell_who_is_here()

    def _already_here(self, hello: Hello) -> str | None:
        for holder in (self._ours, *(seat.hello for seat in self._seats)):
            if holder.identity.is_same_process(hello.identity):
                return (
                    f"{self._job.who(hello.ranks)} ({hello.identity}) is in the same process as "
                    f"{self._job.who(holder.ranks)}: call once in each process, with ranks= of all that it drives."
                )
            if taken := sorted({*holder.ranks} & {*hello.ranks}):
                return held_by(taken, holder.identity, self._job)
        return None

    def _hear(self, seat: Seat) -> None:
        """A process that waits says nothing but that it leaves; it may come again then."""
        try:
            received = receive(seat.connection)
        except (OSError, Unreadable):
            received = None
        if received is None:
            raise seat.lost(self._job)
        for descriptor in received[1]:
            os.close(descriptor)
        who = f"{self._job.who(seat.hello.ranks)} ({seat.hello.identity})"
        self._notes.append(f"{who} came, and {received[0].get('why')}")
        self._left |= {*seat.hello.ranks}
        self._reception.unwatch(seat.connection)
        seat.connection.close()
        self._seats.remove(seat)
        self._tell_who_is_here()

    def _tell_who_is_here(self) -> None:
        message = {"kind": "waiting", "came": sorted(self._came())}
        for seat in self._seats:
            with contextlib.suppress(OSError):  # its end comes as an event of its own; who does not read, need not know
                send(seat.connection, message)

    def _why_not(self, deadline: Deadline) -> str:
        me = f"{self._job.who(self._ours.ranks)} ({self._ours.identity})"
        return missing_text(self._job, me, deadline, self._came(), self._notes)

    # --- how it ends --------------------------------------------------------------------------------------------------

    def _guard(self, meeting: Meeting) -> None:
        for seat in self._seats:
            self._reception.unwatch(seat.connection)
            seat.connection.close()
        try:
            members = [(peer.ranks, peer.identity) for peer in meeting.peers]
            meeting.guard = Guard(self._reception, self._ours, members, self._job)
        except BaseException:
            meeting.close()
            raise

    def _give_up(self, message: Message) -> None:
        self._reception.close()
        for seat in self._seats:
            with contextlib.suppress(OSError):
                send(seat.connection, message)
            seat.connection.close()
