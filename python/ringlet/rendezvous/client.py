"""The side of the rendezvous that comes to rank 0."""

from __future__ import annotations

import contextlib
import errno
import os
import socket

from ringlet import _core
from ringlet.errors import DeadlineExceededError, FailedPreconditionError, WorkerLostError
from ringlet.ipc.deadline import Deadline
from ringlet.ipc.unix_sockets import close_in_children, credentials, open_pidfd
from ringlet.rendezvous.handshake import Hello
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.membership import Meeting, Peer
from ringlet.rendezvous.messages import Message, Unreadable, new_socket, receive, send
from ringlet.rendezvous.process_identity import ProcessIdentity
from ringlet.rendezvous.rendezvous_errors import how_it_left, lost, missing_text

__all__ = ["Visit"]


class Visit:
    """One process's attempts to join its group.

    Parameters
    ----------
    job : Job
        Whose group it is.
    hello : Hello
        What this process says.
    address : str
        Where the job meets.
    deadline : Deadline
        When to give up.
    """

    def __init__(self, job: Job, hello: Hello, address: str, deadline: Deadline) -> None:
        self._job = job
        self._hello = hello
        self._address = address
        self._deadline = deadline
        self._came: set[int] = set()  # who is there, as far as anybody has told
        self._notes: list[str] = []

    def attempt(self) -> Meeting | None:
        """Join the group, if somebody gathers it now.

        Returns
        -------
        Meeting or None
            None if nobody does, or who did has left; then try again.

        Raises
        ------
        FailedPreconditionError
            If this process cannot be of the group.
        PermissionError
            If another user has taken the name.
        DeadlineExceededError, WorkerLostError, OSError
            As :meth:`Gathering.gather` does, in every process that waits.
        """
        self._came = set()
        connection = new_socket()
        # Else it would wait for a listener that is stopped.
        connection.settimeout(max(self._deadline.left(1.0), 0.001))
        try:
            connection.connect(self._address)
        except OSError as error:
            connection.close()
            if error.errno in (errno.ECONNREFUSED, errno.EAGAIN, errno.EINTR):
                return None
            raise
        with connection:
            self._refuse_other_users(connection)
            return self._wait(connection)

    def give_up(self) -> DeadlineExceededError:
        """Make the error of who has waited long enough."""
        me = f"{self._job.who(self._hello.ranks)} ({self._hello.identity})"
        notes = (
            [] if self._came else [f"The others meet at {self._job.who([0])}, which is not there", *self._notes[-1:]]
        )
        return DeadlineExceededError(missing_text(self._job, me, self._deadline, self._came, notes))

    def _refuse_other_users(self, connection: socket.socket) -> None:
        pid, uid = credentials(connection)
        if uid != os.geteuid():
            me = self._job.who(self._hello.ranks)
            raise PermissionError(
                errno.EPERM,
                f"the name under which {self._job} meets is held by pid {pid} of user {uid}, not of user "
                f"{os.geteuid()}, who runs {me}: run all as one user; if that process "
                "is none of yours, choose another RINGLET_JOB_ID",
            )

    def _wait(self, connection: socket.socket) -> Meeting | None:
        host = _core.Pidfd(open_pidfd(connection), credentials(connection)[0])
        peers: dict[int, Peer] = {}
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # why is told when we read
                send(connection, self._hello.as_message())
            return self._follow(connection, host, peers)
        except (DeadlineExceededError, WorkerLostError, FailedPreconditionError):
            raise
        except OSError as error:
            _say_goodbye(connection, f"could not go on: {error}")
            raise
        except BaseException as error:
            _say_goodbye(connection, f"was interrupted by {type(error).__name__}")
            raise
        finally:
            for peer in peers.values():
                peer.close()

    def _follow(self, connection: socket.socket, host: _core.Pidfd, peers: dict[int, Peer]) -> Meeting | None:
        """Do what the messages say, until they say that all are connected or that nothing comes of it."""
        index, size, token = 0, 0, b""
        while True:
            message, descriptors = self._next(connection, host)
            kind = message["kind"]
            if kind == "waiting":
                self._came = {*message["came"]}
            elif kind == "complete":
                index, size, token = message["index"], message["size"], bytes.fromhex(message["token"])
            elif kind == "peer":
                peers[message["index"]] = _peer(message, descriptors)
            elif kind == "go":
                peers[index] = Peer(self._hello.ranks, self._hello.identity)
                meeting = Meeting(index, [peers[number] for number in range(size)], token)
                peers.clear()
                return meeting
            else:
                self._end(kind, message)
                return None

    def _next(self, connection: socket.socket, host: _core.Pidfd) -> tuple[Message, list[int]]:
        """Give the next message; one of our own where the connection has ended."""
        while True:
            try:
                # Slice by slice: a socket takes no infinite time-out.
                connection.settimeout(max(self._deadline.left(60.0), 0.001))
                received = receive(connection)
            except TimeoutError:
                if not self._deadline.is_over():
                    continue
                _say_goodbye(connection, f"gave up after {self._deadline}")
                raise self.give_up() from None
            except ConnectionResetError:
                continue  # told once, before what is left to be read
            except Unreadable:
                return {"kind": "unreadable"}, []
            if received is not None:
                return received
            if not self._came:
                return {"kind": "unheard"}, []
            pid = credentials(connection)[0]
            return {"kind": "lost", "rank": 0, "pid": pid, "reason": how_it_left(host)}, []

    def _end(self, kind: str, message: Message) -> None:
        """Raise if the group will not be; return if a later attempt may find it."""
        if kind == "refused" and not message["may_retry"]:
            raise FailedPreconditionError(message["reason"])
        if kind == "late":
            raise DeadlineExceededError(message["message"])
        if kind == "lost":
            raise lost(self._job, message["rank"], message["pid"], message["reason"])
        if kind == "refused":
            self._notes.append(str(message["reason"]).rstrip("."))
        elif kind == "leaving":
            self._notes.append(f"It was there, and {message['why']}")
        self._came = set()


def _peer(message: Message, descriptors: list[int]) -> Peer:
    connection = close_in_children(socket.socket(fileno=descriptors[0]))
    pidfd = descriptors[1] if len(descriptors) > 1 else -1
    return Peer(tuple(message["ranks"]), ProcessIdentity.from_record(message["process"]), connection, pidfd)


def _say_goodbye(connection: socket.socket, why: str) -> None:
    with contextlib.suppress(OSError):
        send(connection, {"kind": "leaving", "why": why})
