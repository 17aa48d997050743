"""Peer sockets: a connection for each pair of processes of a complete group."""

from __future__ import annotations

import errno
import os
import secrets
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ringlet import _core
from ringlet.errors import DeadlineExceededError, WorkerLostError
from ringlet.ipc.deadline import Deadline
from ringlet.ipc.unix_sockets import no_descriptor_left, pair
from ringlet.rendezvous.connected_group import ConnectedGroup, Peer
from ringlet.rendezvous.handshake import Handshake
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.messages import Message, send
from ringlet.rendezvous.rendezvous_errors import departure_reason, how_it_left, lost


@dataclass
class WaitingProcess:
    """A process that waits until the others have connected; its connection is non-blocking."""

    handshake: Handshake
    connection: socket.socket
    process: _core.Pidfd

    def lost(self, job: Job) -> WorkerLostError:
        """Return the error for this process after its connection has closed."""
        reason = departure_reason(self.connection) or how_it_left(self.process)
        return lost(job, self.handshake.ranks[0], self.handshake.identity.pid, reason)


@dataclass
class PeerSockets:
    """Creates and distributes the connections; `waiting` are all other processes, in rank order."""

    job: Job
    ours: Handshake
    waiting: list[WaitingProcess]
    deadline: Deadline

    def make(self) -> ConnectedGroup:
        """Create a socket pair for each pair of processes, and send the ends.

        The ends of a pair are sent before the next pair is created, so that few sockets are open at a time. The message
        "go" follows the last end.
        """
        token = secrets.token_bytes(32)
        own_process = _core.Pidfd(_own_pidfd(), self.ours.identity.pid)
        peers = [Peer(self.ours.ranks, self.ours.identity)]
        try:
            size = len(self.waiting) + 1
            for index, waiting in enumerate(self.waiting, 1):
                self._send(waiting, {"kind": "complete", "index": index, "size": size, "token": token.hex()})
            for index, waiting in enumerate(self.waiting, 1):
                mine, other = pair(socket.SOCK_SEQPACKET)
                peers.append(Peer(waiting.handshake.ranks, waiting.handshake.identity, mine, _copy(waiting.process)))
                with other:
                    self._send_peer(waiting, 0, self.ours, own_process, other)
                for earlier_index, earlier in enumerate(self.waiting[: index - 1], 1):
                    one, other = pair(socket.SOCK_SEQPACKET)
                    with one, other:
                        self._send_peer(waiting, earlier_index, earlier.handshake, earlier.process, one)
                        self._send_peer(earlier, index, waiting.handshake, waiting.process, other)
            for waiting in self.waiting:
                self._send(waiting, {"kind": "go"})
        except BaseException:
            for peer in peers:
                peer.close()
            raise
        return ConnectedGroup(0, peers, token)

    def _send_peer(
        self, waiting: WaitingProcess, index: int, other: Handshake, process: _core.Pidfd, end: socket.socket
    ) -> None:
        """Send one process its connection to another process, and that process's pidfd."""
        pidfd = process.fileno()
        message = {
            "kind": "peer",
            "index": index,
            "ranks": list(other.ranks),
            "process": other.identity.as_record(),
        }
        self._send(waiting, message, [end.fileno(), pidfd] if pidfd >= 0 else [end.fileno()])

    def _send(self, waiting: WaitingProcess, message: Message, descriptors: Sequence[int] = ()) -> None:
        """Send a message; wait while the socket's buffer is full."""
        while True:
            try:
                return send(waiting.connection, message, descriptors)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.ETOOMANYREFS, errno.EINTR, errno.ENOBUFS):
                    raise waiting.lost(self.job) from None
            if self.deadline.is_over():
                raise DeadlineExceededError(
                    f"{self.job.names_of(waiting.handshake.ranks)} ({waiting.handshake.identity}) connected to "
                    f"{self.job}, but has not read its messages for {self.deadline}: check whether the process is "
                    "stopped."
                )
            time.sleep(0.002)


def _own_pidfd() -> int:
    try:
        return os.pidfd_open(os.getpid())
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise OSError(errno.EMFILE, no_descriptor_left()) from None
        return -1


def _copy(process: _core.Pidfd) -> int:
    return os.dup(process.fileno()) if process.fileno() >= 0 else -1
