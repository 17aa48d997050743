"""Messages of the rendezvous: one JSON object each, with file descriptors where one hands them over.

Nothing that is received is ever run or unpickled; a message is at most 64 KiB, so a stranger cannot fill the memory.
"""

from __future__ import annotations

import array
import errno
import json
import os
import resource
import socket
import struct
import weakref
from collections.abc import Sequence
from typing import Any

__all__ = [
    "Message",
    "Unreadable",
    "close_in_children",
    "credentials",
    "new_socket",
    "no_descriptor_left",
    "open_pidfd",
    "receive",
    "send",
]

Message = dict[str, Any]

_LIMIT_BYTES = 65536
_MOST_DESCRIPTORS = 8
_SO_PEERPIDFD = 77  # asm-generic/socket.h of Linux 6.5
_MSG_CMSG_CLOEXEC = 0x40000000  # which Python names on Linux only

_to_close_in_children: weakref.WeakSet[socket.socket] = weakref.WeakSet()


class Unreadable(ValueError):
    """What came is no message of ours."""


def _close_all() -> None:
    for connection in list(_to_close_in_children):
        connection.close()


os.register_at_fork(after_in_child=_close_all)


def close_in_children(connection: socket.socket) -> socket.socket:
    """Have a socket closed in forked children, which would hold its name or the connection; give it back."""
    _to_close_in_children.add(connection)
    return connection


def new_socket() -> socket.socket:
    """Open a socket that keeps messages apart and is closed by fork and exec."""
    return close_in_children(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))


def send(connection: socket.socket, message: Message, descriptors: Sequence[int] = ()) -> None:
    """Send one message.

    Raises
    ------
    OSError
        If nobody is there any more, or nobody reads within the socket's time-out.
    """
    data = json.dumps(message).encode("ascii")
    if descriptors:
        socket.send_fds(connection, [data], descriptors, socket.MSG_NOSIGNAL)
    else:
        connection.send(data, socket.MSG_NOSIGNAL)


def receive(connection: socket.socket) -> tuple[Message, list[int]] | None:
    """Receive one message, and the descriptors that came with it, which the caller closes.

    Returns
    -------
    tuple or None
        None if the other side has closed the connection.

    Raises
    ------
    Unreadable
        If it is no JSON object.
    OSError
        If nothing came within the socket's time-out, or this process has no descriptor left (``EMFILE``).
    """
    # Not socket.recv_fds, which passes no flags on in some versions of Python.
    space = socket.CMSG_LEN(_MOST_DESCRIPTORS * array.array("i").itemsize)
    data, extras, flags, _ = connection.recvmsg(_LIMIT_BYTES, space, _MSG_CMSG_CLOEXEC)
    descriptors = [number for extra in extras for number in _descriptors_in(*extra)]
    try:
        if flags & socket.MSG_CTRUNC:
            raise OSError(errno.EMFILE, no_descriptor_left())
        if not data:
            return None
        message = json.loads(data)
        if flags & socket.MSG_TRUNC or not isinstance(message, dict):
            raise Unreadable("no message of ours")
    except (ValueError, RecursionError):
        _close(descriptors)
        raise Unreadable("no message of ours") from None
    except OSError:
        _close(descriptors)
        raise
    return message, descriptors


def _descriptors_in(level: int, kind: int, data: bytes) -> list[int]:
    numbers = array.array("i")
    if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
        numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
    return list(numbers)


def credentials(connection: socket.socket) -> tuple[int, int]:
    """Tell pid and uid of the process at the other end, from the system, which does not take its word for it."""
    size = struct.calcsize("3i")
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return pid, uid


def open_pidfd(connection: socket.socket) -> int:
    """Open a handle of the process at the other end.

    Returns
    -------
    int
        A descriptor that the caller closes; -1 where the system has none, or the process is gone.
    """
    try:
        return connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError:
        pass
    try:
        return os.pidfd_open(credentials(connection)[0])
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise OSError(errno.EMFILE, no_descriptor_left()) from None
        return -1


def no_descriptor_left() -> str:
    """Say that the limit of open files is too low."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"this process may open no more than {soft} files, which is too few to join its group: raise the limit "
        "(`ulimit -n`), or close what is not needed"
    )


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
