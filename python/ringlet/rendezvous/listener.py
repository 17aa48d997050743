"""Where processes come in: reads what each says first, and drops who says nothing of use."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import time
from dataclasses import dataclass

from ringlet.ipc.unix_sockets import close_in_children, credentials, no_descriptor_left
from ringlet.rendezvous.handshake import Hello
from ringlet.rendezvous.messages import Unreadable, new_socket, receive, send

__all__ = ["Reception", "Visitor", "listen", "refuse"]

# A process of ours says hello as soon as it is connected. Who does not is dropped after this time, or when more come.
_SILENCE_SECONDS = 0.8
_MOST_SILENT = 64
_BACKLOG = 128


def listen(address: str) -> socket.socket | None:
    """Listen under an abstract name; None if somebody else does."""
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
class Visitor:
    """A process of this user that has said hello.

    Attributes
    ----------
    connection : socket
        Not blocking.
    pid : int
        As the system tells it.
    hello : Hello
        What it said, which may be anything that can be read as a hello.
    """

    connection: socket.socket
    pid: int
    hello: Hello


class Reception:
    """Accepts connections under the name of a job. Belongs to one thread at a time.

    Parameters
    ----------
    listener : socket
        Taken over.
    version : str
        What a hello says if it is of our own version.
    """

    def __init__(self, listener: socket.socket, version: str) -> None:
        self._listener = listener
        self._version = version
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._silent: dict[socket.socket, float] = {}  # when each is dropped, the oldest first
        self._watched: set[socket.socket | int] = set()

    def watch(self, connection: socket.socket | int) -> None:
        """Let :meth:`poll` tell when something else can be read, too."""
        self._selector.register(connection, selectors.EVENT_READ)
        self._watched.add(connection)

    def unwatch(self, connection: socket.socket | int) -> None:
        """Take :meth:`watch` back."""
        self._selector.unregister(connection)
        self._watched.remove(connection)

    def poll(self, seconds: float) -> tuple[list[Visitor], list[socket.socket | int]]:
        """Wait until somebody has said hello, or something watched can be read, at most for so long.

        Raises
        ------
        OSError
            ``EMFILE`` if this process has no descriptor left to accept anybody.
        """
        if self._silent:
            seconds = min(seconds, max(next(iter(self._silent.values())) - time.monotonic(), 0.0))
        visitors: list[Visitor] = []
        ready: list[socket.socket | int] = []
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj in self._watched:
                ready.append(key.fileobj)
            elif key.fileobj in self._silent:  # and not dropped meanwhile, to make room
                visitors += self._hear(key.fileobj)
        self._drop_silent()
        return visitors, ready

    def close(self) -> None:
        """Give the name back, and drop who has not said hello."""
        self._selector.close()
        self._listener.close()
        for connection in self._silent:
            connection.close()
        self._silent.clear()

    def _accept(self) -> None:
        for _ in range(_MOST_SILENT):
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.ECONNABORTED, errno.EINTR):
                    return
                if error.errno in (errno.EMFILE, errno.ENFILE) and self._silent:
                    time.sleep(0.002)  # those who are in will be heard, or dropped, before long
                    return
                if error.errno == errno.EMFILE:
                    raise OSError(errno.EMFILE, no_descriptor_left()) from None
                raise
            close_in_children(connection).setblocking(False)
            if credentials(connection)[1] != os.geteuid():
                refuse(connection, "this name belongs to another user.")
                continue
            while len(self._silent) >= _MOST_SILENT:
                self._drop(next(iter(self._silent)))
            self._silent[connection] = time.monotonic() + _SILENCE_SECONDS
            self._selector.register(connection, selectors.EVENT_READ)

    def _hear(self, connection: socket.socket) -> list[Visitor]:
        try:
            received = receive(connection)
            if received is None:
                raise Unreadable("nothing said")
            for descriptor in received[1]:
                os.close(descriptor)
            hello = Hello.from_message(received[0], self._version)
        except (OSError, Unreadable):
            self._drop(connection)
            return []
        del self._silent[connection]
        self._selector.unregister(connection)
        return [Visitor(connection, credentials(connection)[0], hello)]

    def _drop_silent(self) -> None:
        now = time.monotonic()
        for connection in [connection for connection, until in self._silent.items() if until <= now]:
            self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        del self._silent[connection]
        self._selector.unregister(connection)
        connection.close()


def refuse(connection: socket.socket, reason: str, *, may_retry: bool = False) -> None:
    """Send somebody away, with the reason."""
    with contextlib.suppress(OSError):
        send(connection, {"kind": "refused", "reason": reason, "may_retry": may_retry})
    connection.close()
