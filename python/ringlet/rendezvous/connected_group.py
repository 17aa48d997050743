"""Connected group: the result of a rendezvous, with a connection to every other process."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field

from ringlet.rendezvous.late_arrivals import LateArrivals
from ringlet.rendezvous.process_identity import ProcessIdentity


@dataclass
class Peer:
    """One process of a group, which drives `ranks`, in ascending order.

    For the calling process `connection` is None and `pidfd` is -1; `pidfd` is also -1 if the system has no pidfds.
    """

    ranks: tuple[int, ...]
    identity: ProcessIdentity
    connection: socket.socket | None = None
    pidfd: int = -1

    def close(self) -> None:
        """Close both descriptors; no effect after `take`."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1

    def take(self) -> tuple[int, int]:
        """Return the descriptors of the connection and the process, which the caller closes."""
        connection = -1 if self.connection is None else self.connection.detach()
        pidfd = self.pidfd
        self.connection, self.pidfd = None, -1
        return connection, pidfd


@dataclass
class ConnectedGroup:
    """All processes of a group; the calling process is ``peers[index]``.

    `peers`, sorted by lowest rank, and the random `token` are equal in every process. In the process of rank 0,
    `late_arrivals` refuses other processes while the group exists; elsewhere it is None.
    """

    index: int
    peers: list[Peer]
    token: bytes = field(repr=False)  # a secret shared by the members
    late_arrivals: LateArrivals | None = field(default=None)

    def release(self) -> None:
        """Close the peers, and release the rendezvous name without waiting for it; safe in finalizers."""
        for peer in self.peers:
            peer.close()
        if self.late_arrivals is not None:
            self.late_arrivals.stop()

    def wait(self) -> None:
        """After `release`, wait until the rendezvous name is released."""
        if self.late_arrivals is not None:
            self.late_arrivals.wait()

    def close(self) -> None:
        """Close the peers, and release the rendezvous name."""
        self.release()
        self.wait()
