"""Rendezvous client: joins a group; used by every process other than the host."""

from __future__ import annotations

import contextlib
import errno
import os
import socket

from ringlet import _core
from ringlet.errors import DeadlineExceededError, FailedPreconditionError, WorkerLostError
from ringlet.ipc.deadline import Deadline
from ringlet.ipc.unix_sockets import close_in_children, credentials, open_pidfd
from ringlet.rendezvous.connected_group import ConnectedGroup, Peer
from ringlet.rendezvous.handshake import Handshake
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.messages import Message, Unreadable, new_socket, receive, send
from ringlet.rendezvous.process_identity import ProcessIdentity
from ringlet.rendezvous.rendezvous_errors import how_it_left, lost, missing_text


class RendezvousClient:
    """The attempts of a process to join its group before a deadline."""

    def __init__(self, job: Job, handshake: Handshake, address: str, deadline: Deadline) -> None:
        self._job = job
        self._handshake = handshake
        self._address = address
        self._deadline = deadline
        self.arrived: set[int] = set()  # the connected ranks, as last reported by the host
        self._notes: list[str] = []

    def attempt(self) -> ConnectedGroup | None:
        """Join the group; return None if the caller can retry, for example because no host listens yet.

        Raises an error if the rendezvous fails, or if the host refuses this process for good.
        """
        self.arrived = set()
        connection = new_socket()
        # Without a time-out, connecting to a stopped listener would block.
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
        """Return the error of a rendezvous that exceeded its deadline."""
        notes = (
            []
            if self.arrived
            else [f"All ranks connect to {self._job.names_of([0])}, which has not started", *self._notes[-1:]]
        )
        return DeadlineExceededError(missing_text(self._job, self._handshake, self._deadline, self.arrived, notes))

    def _refuse_other_users(self, connection: socket.socket) -> None:
        pid, uid = credentials(connection)
        if uid != os.geteuid():
            me = self._job.names_of(self._handshake.ranks)
            raise PermissionError(
                errno.EPERM,
                f"the rendezvous name of {self._job} is held by pid {pid} of user {uid}, but {me} runs as user "
                f"{os.geteuid()}: run all processes as one user; if that process belongs to another job, choose "
                "another RINGLET_JOB_ID",
            )

    def _wait(self, connection: socket.socket) -> ConnectedGroup | None:
        host = _core.Pidfd(open_pidfd(connection), credentials(connection)[0])
        peers: dict[int, Peer] = {}
        try:
            # If the host has refused the connection, the next read returns the reason.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                send(connection, self._handshake.as_message())
            return self._follow(connection, host, peers)
        except (DeadlineExceededError, WorkerLostError, FailedPreconditionError):
            raise
        except OSError as error:
            _send_departure(connection, f"failed: {error}")
            raise
        except BaseException as error:
            _send_departure(connection, f"was interrupted by {type(error).__name__}")
            raise
        finally:
            for peer in peers.values():
                peer.close()

    def _follow(self, connection: socket.socket, host: _core.Pidfd, peers: dict[int, Peer]) -> ConnectedGroup | None:
        """Process the host's messages; return the group once it is connected, or None if the attempt has failed."""
        index, size, token = 0, 0, b""
        while True:
            message, descriptors = self._next(connection, host)
            kind = message["kind"]
            if kind == "waiting":
                self.arrived = {*message["came"]}
            elif kind == "complete":
                index, size, token = message["index"], message["size"], bytes.fromhex(message["token"])
            elif kind == "peer":
                peers[message["index"]] = _peer(message, descriptors)
            elif kind == "go":
                peers[index] = Peer(self._handshake.ranks, self._handshake.identity)
                connected = ConnectedGroup(index, [peers[number] for number in range(size)], token)
                peers.clear()
                return connected
            else:
                self._end(kind, message)
                return None

    def _next(self, connection: socket.socket, host: _core.Pidfd) -> tuple[Message, list[int]]:
        """Return the next message; without one, a message of kind "lost", "no_reply" or "unreadable" that says why."""
        while True:
            try:
                # Waits at most 60 s at a time, because a socket does not accept an infinite time-out.
                connection.settimeout(max(self._deadline.left(60.0), 0.001))
                received = receive(connection)
            except TimeoutError:
                if not self._deadline.is_over():
                    continue
                _send_departure(connection, f"gave up after {self._deadline}")
                raise self.give_up() from None
            except ConnectionResetError:
                continue  # a reset is reported once, before the unread data
            except Unreadable:
                return {"kind": "unreadable"}, []
            if received is not None:
                return received
            if not self.arrived:
                return {"kind": "no_reply"}, []
            pid = credentials(connection)[0]
            return {"kind": "lost", "rank": 0, "pid": pid, "reason": how_it_left(host)}, []

    def _end(self, kind: str, message: Message) -> None:
        """Raise an error if the rendezvous has failed; return if a later attempt may succeed."""
        if kind == "refused" and not message["may_retry"]:
            raise FailedPreconditionError(message["reason"])
        if kind == "late":
            raise DeadlineExceededError(message["message"])
        if kind == "lost":
            raise lost(self._job, message["rank"], message["pid"], message["reason"])
        if kind == "refused":
            self._notes.append(str(message["reason"]).rstrip("."))
        elif kind == "leaving":
            self._notes.append(f"An earlier process had started as {self._job.names_of([0])}, and {message['why']}")
        self.arrived = set()


def _peer(message: Message, descriptors: list[int]) -> Peer:
    connection = close_in_children(socket.socket(fileno=descriptors[0]))
    pidfd = descriptors[1] if len(descriptors) > 1 else -1
    return Peer(tuple(message["ranks"]), ProcessIdentity.from_record(message["process"]), connection, pidfd)


def _send_departure(connection: socket.socket, why: str) -> None:
    with contextlib.suppress(OSError):
        send(connection, {"kind": "leaving", "why": why})
