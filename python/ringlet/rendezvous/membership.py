"""Membership: the result of a rendezvous, with a connection to every other process."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field

from ringlet.rendezvous.late_arrivals import LateArrivals
from ringlet.rendezvous.process_identity import ProcessIdentity

__all__ = ["Membership", "Peer"]


@dataclass
class Peer:
    """One process of a group.

    Attributes
    ----------
    ranks : tuple of int
        Ranks that it drives, in ascending order.
    identity : ProcessIdentity
    connection : socket or None
        None for the calling process.
    pidfd : int
        -1 for the calling process, and where the system has no pidfds.
    """

    ranks: tuple[int, ...]
    identity: ProcessIdentity
    connection: socket.socket | None = None
    pidfd: int = -1

    def close(self) -> None:
        """Close both descriptors, unless `take` has returned them."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1

    def take(self) -> tuple[int, int]:
        """Return the descriptors of connection and pidfd, which the caller closes."""
        connection = -1 if self.connection is None else self.connection.detach()
        pidfd = self.pidfd
        self.connection, self.pidfd = None, -1
        return connection, pidfd


@dataclass
class Membership:
    """All processes of a group.

    Attributes
    ----------
    index : int
        Index of this process in `peers`.
    peers : list of Peer
        In the order of their lowest ranks, equal in every process.
    token : bytes
        Random, equal in every process.
    late_arrivals : LateArrivals or None
        Refuses other processes while the group lives; None except in the process of rank 0.
    """

    index: int
    peers: list[Peer]
    token: bytes = field(repr=False)  # a secret of the members
    late_arrivals: LateArrivals | None = field(default=None)

    def release(self) -> None:
        """Close the peers, and release the name soon; safe in finalizers."""
        for peer in self.peers:
            peer.close()
        if self.late_arrivals is not None:
            self.late_arrivals.stop()

    def wait(self) -> None:
        """After `release`, wait until the name is released."""
        if self.late_arrivals is not None:
            self.late_arrivals.wait()

    def close(self) -> None:
        """Close the peers, and release the name."""
        self.release()
        self.wait()
