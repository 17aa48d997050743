"""Connects each process of a complete group to each other one."""

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
from ringlet.rendezvous.handshake import Hello
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.membership import Meeting, Peer
from ringlet.rendezvous.messages import Message, send
from ringlet.rendezvous.rendezvous_errors import how_it_left, last_words, lost

__all__ = ["Introductions", "Seat"]


@dataclass
class Seat:
    """A process that has come, and waits for the others.

    Attributes
    ----------
    hello : Hello
        What it said.
    connection : socket
        Not blocking.
    process : _core.Pidfd
        Handle of it.
    """

    hello: Hello
    connection: socket.socket
    process: _core.Pidfd

    def lost(self, job: Job) -> WorkerLostError:
        """Make the error of what is found when nobody is at the other end any more."""
        reason = last_words(self.connection) or how_it_left(self.process)
        return lost(job, self.hello.ranks[0], self.hello.identity.pid, reason)


@dataclass
class Introductions:
    """What hands the connections out.

    Attributes
    ----------
    job : Job
        Whose processes these are.
    ours : Hello
        Of the calling process, which has rank 0.
    seats : list of Seat
        All others, in the order of their ranks.
    deadline : Deadline
        When to give up.
    """

    job: Job
    ours: Hello
    seats: list[Seat]
    deadline: Deadline

    def make(self) -> Meeting:
        """Make a pair of sockets for each pair of processes, and hand the ends out.

        Each is sent before the next is made, so that few are open at a time. No process goes on before all have all.
        """
        token = secrets.token_bytes(32)
        own_process = _core.Pidfd(_own_pidfd(), self.ours.identity.pid)
        peers = [Peer(self.ours.ranks, self.ours.identity)]
        try:
            size = len(self.seats) + 1
            for index, seat in enumerate(self.seats, 1):
                self._send(seat, {"kind": "complete", "index": index, "size": size, "token": token.hex()})
            for index, seat in enumerate(self.seats, 1):
                mine, other = pair(socket.SOCK_SEQPACKET)
                peers.append(Peer(seat.hello.ranks, seat.hello.identity, mine, _copy(seat.process)))
                with other:
                    self._introduce(seat, 0, self.ours, own_process, other)
                for earlier_index, earlier in enumerate(self.seats[: index - 1], 1):
                    one, other = pair(socket.SOCK_SEQPACKET)
                    with one, other:
                        self._introduce(seat, earlier_index, earlier.hello, earlier.process, one)
                        self._introduce(earlier, index, seat.hello, seat.process, other)
            for seat in self.seats:
                self._send(seat, {"kind": "go"})
        except BaseException:
            for peer in peers:
                peer.close()
            raise
        return Meeting(0, peers, token)

    def _introduce(self, seat: Seat, index: int, other: Hello, process: _core.Pidfd, end: socket.socket) -> None:
        """Send one process the connection to another, and a handle of it."""
        pidfd = process.fileno()
        message = {
            "kind": "peer",
            "index": index,
            "ranks": list(other.ranks),
            "process": other.identity.as_record(),
        }
        self._send(seat, message, [end.fileno(), pidfd] if pidfd >= 0 else [end.fileno()])

    def _send(self, seat: Seat, message: Message, descriptors: Sequence[int] = ()) -> None:
        """Send something that must arrive; wait while too much is on its way."""
        while True:
            try:
                return send(seat.connection, message, descriptors)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.ETOOMANYREFS, errno.EINTR, errno.ENOBUFS):
                    raise seat.lost(self.job) from None
            if self.deadline.is_over():
                raise DeadlineExceededError(
                    f"{self.job.who(seat.hello.ranks)} ({seat.hello.identity}) came to {self.job}, but does not read "
                    f"what it is sent: it may be stopped. The time-out was {self.deadline}."
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
