"""Messages of the rendezvous: one JSON object each, with file descriptors as ancillary data.

Messages are untrusted: never unpickled, and at most 64 KiB, to bound memory.
"""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Sequence
from typing import Any

from ringlet.ipc.unix_sockets import (
    MSG_CMSG_CLOEXEC,
    close_in_children,
    descriptor_space,
    descriptors_in,
    no_descriptor_left,
)

Message = dict[str, Any]

_LIMIT_BYTES = 65536
_MOST_DESCRIPTORS = 8


class Unreadable(ValueError):
    """The received data is not a message of the rendezvous."""


def new_socket() -> socket.socket:
    """Open a socket that preserves message boundaries; forked children and exec close it."""
    return close_in_children(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))


def send(connection: socket.socket, message: Message, descriptors: Sequence[int] = ()) -> None:
    """Send one message.

    Raises OSError if the peer has closed the connection, or does not read within the socket's time-out.
    """
    data = json.dumps(message).encode("ascii")
    if descriptors:
        socket.send_fds(connection, [data], descriptors, socket.MSG_NOSIGNAL)
    else:
        connection.send(data, socket.MSG_NOSIGNAL)


def receive(connection: socket.socket) -> tuple[Message, list[int]] | None:
    """Receive one message and its descriptors, which the caller closes; None if the peer has closed the connection.

    Raises Unreadable if the data is not a JSON object, and OSError if no message arrives within the socket's time-out,
    or if this process has no descriptor left (``EMFILE``).
    """
    # Not socket.recv_fds, which drops the flags in some versions of Python.
    data, extras, flags, _ = connection.recvmsg(_LIMIT_BYTES, descriptor_space(_MOST_DESCRIPTORS), MSG_CMSG_CLOEXEC)
    descriptors = descriptors_in(extras)
    try:
        if flags & socket.MSG_CTRUNC:
            raise OSError(errno.EMFILE, no_descriptor_left())
        if not data:
            return None
        message = json.loads(data)
        if flags & socket.MSG_TRUNC or not isinstance(message, dict):
            raise Unreadable("not a ringlet message")
    except (ValueError, RecursionError):
        _close(descriptors)
        raise Unreadable("not a ringlet message") from None
    except OSError:
        _close(descriptors)
        raise
    return message, descriptors


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
