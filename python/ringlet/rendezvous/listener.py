"""Listener: accepts connections, reads their handshakes, and drops invalid connections."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import time
from dataclasses import dataclass

from ringlet.ipc.unix_sockets import close_in_children, credentials, no_descriptor_left
from ringlet.rendezvous.handshake import Handshake
from ringlet.rendezvous.messages import Unreadable, new_socket, receive, send

# Time after which a connection without a handshake is dropped; clients send their handshakes at once.
_HANDSHAKE_SECONDS = 0.8
# Maximum number of connections without a handshake; if exceeded, the oldest is dropped.
_MAX_PENDING = 64
_BACKLOG = 128


def listen(address: str) -> socket.socket | None:
    """Return a socket that listens under an abstract name; None if the address is in use."""
    listener = new_socket()
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    listener.listen(_BACKLOG)
    listener.setblocking(False)
    return listener


@dataclass
class ConnectedProcess:
    """A process of this user that has sent a well-formed handshake, which is untrusted.

    The connection is non-blocking; the pid is reported by the kernel.
    """

    connection: socket.socket
    pid: int
    handshake: Handshake


class Listener:
    """Accepts connections under the name of a job; owns the listening socket. Not thread-safe.

    `version` is the version in the handshakes of this process.
    """

    def __init__(self, listener: socket.socket, version: str) -> None:
        self._listener = listener
        self._version = version
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._pending: dict[socket.socket, float] = {}  # time of expiry, oldest first
        self._watched: set[socket.socket | int] = set()

    def watch(self, connection: socket.socket | int) -> None:
        """Add a socket or descriptor that :meth:`poll` reports when it is readable."""
        self._selector.register(connection, selectors.EVENT_READ)
        self._watched.add(connection)

    def unwatch(self, connection: socket.socket | int) -> None:
        """Stop watching a socket or descriptor."""
        self._selector.unregister(connection)
        self._watched.remove(connection)

    def poll(self, seconds: float) -> tuple[list[ConnectedProcess], list[socket.socket | int]]:
        """Wait up to `seconds` for handshakes and readable watched descriptors; return new processes and descriptors.

        Raises OSError with ``EMFILE`` if this process has no descriptor left to accept a connection.
        """
        if self._pending:
            seconds = min(seconds, max(next(iter(self._pending.values())) - time.monotonic(), 0.0))
        clients: list[ConnectedProcess] = []
        ready: list[socket.socket | int] = []
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj in self._watched:
                ready.append(key.fileobj)
            elif key.fileobj in self._pending:  # the connection was not dropped by _accept
                clients += self._receive_handshake(key.fileobj)
        self._drop_expired()
        return clients, ready

    def close(self) -> None:
        """Release the name, and drop connections without a handshake."""
        self._selector.close()
        self._listener.close()
        for connection in self._pending:
            connection.close()
        self._pending.clear()

    def _accept(self) -> None:
        for _ in range(_MAX_PENDING):
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.ECONNABORTED, errno.EINTR):
                    return
                if error.errno in (errno.EMFILE, errno.ENFILE) and self._pending:
                    time.sleep(0.002)  # pending connections complete or expire soon
                    return
                if error.errno == errno.EMFILE:
                    raise OSError(errno.EMFILE, no_descriptor_left()) from None
                raise
            close_in_children(connection).setblocking(False)
            if credentials(connection)[1] != os.geteuid():
                refuse(connection, f"this name belongs to user {os.geteuid()}: choose another RINGLET_JOB_ID.")
                continue
            while len(self._pending) >= _MAX_PENDING:
                self._drop(next(iter(self._pending)))
            self._pending[connection] = time.monotonic() + _HANDSHAKE_SECONDS
            self._selector.register(connection, selectors.EVENT_READ)

    def _receive_handshake(self, connection: socket.socket) -> list[ConnectedProcess]:
        try:
            received = receive(connection)
            if received is None:
                raise Unreadable("closed without a handshake")
            for descriptor in received[1]:
                os.close(descriptor)
            handshake = Handshake.from_message(received[0], self._version)
        except (OSError, Unreadable):
            self._drop(connection)
            return []
        del self._pending[connection]
        self._selector.unregister(connection)
        return [ConnectedProcess(connection, credentials(connection)[0], handshake)]

    def _drop_expired(self) -> None:
        now = time.monotonic()
        for connection in [connection for connection, until in self._pending.items() if until <= now]:
            self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        del self._pending[connection]
        self._selector.unregister(connection)
        connection.close()


def refuse(connection: socket.socket, reason: str, *, may_retry: bool = False) -> None:
    """Send the reason of a refusal, and close the connection."""
    with contextlib.suppress(OSError):
        send(connection, {"kind": "refused", "reason": reason, "may_retry": may_retry})
    connection.close()
