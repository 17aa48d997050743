"""What a process has after the rendezvous: a connection to every other one."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field

from ringlet.rendezvous.late_arrivals import Guard
from ringlet.rendezvous.process_identity import ProcessIdentity

__all__ = ["Meeting", "Peer"]


@dataclass
class Peer:
    """One process of a group.

    Attributes
    ----------
    ranks : tuple of int
        Those that it drives, in ascending order.
    identity : ProcessIdentity
        Which process it is.
    connection : socket or None
        Leads to it; None for this process itself.
    pidfd : int
        Handle of it; -1 for this process itself, and where the system has none.
    """

    ranks: tuple[int, ...]
    identity: ProcessIdentity
    connection: socket.socket | None = None
    pidfd: int = -1

    def close(self) -> None:
        """Close both descriptors, unless somebody has taken them over."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1

    def take(self) -> tuple[int, int]:
        """Give connection and handle to somebody who closes them."""
        connection = -1 if self.connection is None else self.connection.detach()
        pidfd = self.pidfd
        self.connection, self.pidfd = None, -1
        return connection, pidfd


@dataclass
class Meeting:
    """All processes of a group, as one of them sees it.

    Attributes
    ----------
    index : int
        Which of `peers` this process is.
    peers : list of Peer
        In the order of their lowest ranks: the same in every process.
    token : bytes
        Chosen at random for this meeting, the same in every process.
    guard : Guard or None
        What sends others away while the group lives, in the process that has rank 0.
    """

    index: int
    peers: list[Peer]
    token: bytes = field(repr=False)  # who knows it could pose as a member
    guard: Guard | None = field(default=None)

    def let_go(self) -> None:
        """Close what nobody has taken over, and have the name given back soon. A finalizer may call this."""
        for peer in self.peers:
            peer.close()
        if self.guard is not None:
            self.guard.ring()

    def wait(self) -> None:
        """Wait until the name is given back, if it has been let go."""
        if self.guard is not None:
            self.guard.wait()

    def close(self) -> None:
        """Close what nobody has taken over, and give the name back."""
        self.let_go()
        self.wait()
