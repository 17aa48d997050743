"""Sockets between processes of one machine: whom they lead to, which descriptors come, and that no child holds them."""

from __future__ import annotations

import array
import errno
import os
import resource
import socket
import struct
import weakref
from collections.abc import Iterable

__all__ = [
    "MSG_CMSG_CLOEXEC",
    "close_in_children",
    "credentials",
    "descriptor_space",
    "descriptors_in",
    "no_descriptor_left",
    "open_pidfd",
    "pair",
]

MSG_CMSG_CLOEXEC = 0x40000000  # which Python names on Linux only
_SO_PEERPIDFD = 77  # asm-generic/socket.h of Linux 6.5
_DESCRIPTOR_BYTES = array.array("i").itemsize

_to_close_in_children: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _close_all() -> None:
    for connection in list(_to_close_in_children):
        connection.close()


os.register_at_fork(after_in_child=_close_all)


def close_in_children(connection: socket.socket) -> socket.socket:
    """Have a socket closed in forked children, which would hold its name or the connection; give it back."""
    _to_close_in_children.add(connection)
    return connection


def pair(kind: socket.SocketKind) -> tuple[socket.socket, socket.socket]:
    """Make two ends of a connection, each closed in forked children.

    Raises
    ------
    OSError
        If this process has no descriptor left.
    """
    try:
        one, other = socket.socketpair(socket.AF_UNIX, kind)
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise OSError(errno.EMFILE, no_descriptor_left()) from None
        raise
    return close_in_children(one), close_in_children(other)


def descriptor_space(count: int) -> int:
    """Give the size of the space that receives so many descriptors, for ``recvmsg``."""
    return socket.CMSG_LEN(count * _DESCRIPTOR_BYTES)


def descriptors_in(extras: Iterable[tuple[int, int, bytes]]) -> list[int]:
    """Give the descriptors that ``recvmsg`` has received; from then on they are the caller's."""
    found = array.array("i")
    for level, kind, data in extras:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.frombytes(data[: len(data) - len(data) % _DESCRIPTOR_BYTES])
    return found.tolist()


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
        f"this process may open no more than {soft} files, and has done so: raise the limit (`ulimit -n`), or close "
        "what is not needed"
    )
