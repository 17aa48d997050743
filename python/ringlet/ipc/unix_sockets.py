"""Unix sockets: peer credentials, pidfds, passing of descriptors, and closing in forked children."""

from __future__ import annotations

import array
import errno
import os
import resource
import socket
import struct
import weakref
from collections.abc import Iterable

MSG_CMSG_CLOEXEC = 0x40000000  # socket.MSG_CMSG_CLOEXEC does not exist on every system
_SO_PEERPIDFD = 77  # asm-generic/socket.h of Linux 6.5
_DESCRIPTOR_BYTES = array.array("i").itemsize

_to_close_in_children: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _close_all() -> None:
    for connection in list(_to_close_in_children):
        connection.close()


os.register_at_fork(after_in_child=_close_all)


def close_in_children(connection: socket.socket) -> socket.socket:
    """Register a socket to be closed in forked children, where it would keep the connection open; return it."""
    _to_close_in_children.add(connection)
    return connection


def pair(kind: socket.SocketKind) -> tuple[socket.socket, socket.socket]:
    """Return two connected sockets, closed in forked children."""
    try:
        one, other = socket.socketpair(socket.AF_UNIX, kind)
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise OSError(errno.EMFILE, no_descriptor_left()) from None
        raise
    return close_in_children(one), close_in_children(other)


def descriptor_space(count: int) -> int:
    """Return the ancillary buffer size for `count` file descriptors."""
    return socket.CMSG_LEN(count * _DESCRIPTOR_BYTES)


def descriptors_in(extras: Iterable[tuple[int, int, bytes]]) -> list[int]:
    """Return the descriptors in the ancillary data of ``recvmsg``; the caller closes them."""
    found = array.array("i")
    for level, kind, data in extras:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.frombytes(data[: len(data) - len(data) % _DESCRIPTOR_BYTES])
    return found.tolist()


def credentials(connection: socket.socket) -> tuple[int, int]:
    """Return the peer's pid and uid, as reported by the kernel."""
    size = struct.calcsize("3i")
    pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return pid, uid


def open_pidfd(connection: socket.socket) -> int:
    """Return a new pidfd of the peer; -1 if the system has no pidfds, or the process has exited."""
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
    """Return the message for an exhausted limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"this process has reached its limit of {soft} open files: raise the limit (`ulimit -n`), or close unused files"
    )
