"""Authenticated TCP: connections between hosts whose two ends have proved to each other that they know a secret.

Until the proof of the peer is verified, an end reads exactly 72 bytes and decodes nothing. Each end sends

    8 bytes     the version of this protocol
    32 bytes    a random challenge
    32 bytes    HMAC-SHA256, keyed with the secret, of its role and both challenges

and then one JSON object of at most 64 KiB. The bytes that follow are neither authenticated nor encrypted. The server
sends its proof last, or zeros if the client's proof is wrong: with a valid proof, a client could test guessed secrets.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
from typing import Any

from ringlet.ipc.deadline import Deadline
from ringlet.ipc.unix_sockets import close_in_children

_PROTOCOL = b"ringlet1"
_CHALLENGE_BYTES = _PROOF_BYTES = 32
_MOST_JSON_BYTES = 1 << 16
_BACKLOG = 128
# Time after which the kernel closes a connection whose peer does not acknowledge data or probes, or does not read while
# its buffers are full. Long enough to tolerate a short pause of the process or machine.
LOSS_SECONDS = 30


class NotAuthentic(Exception):
    """The peer does not know the secret, or does not use this protocol; the text is a predicate about the peer."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a TCP port: at an IP address or ``localhost``, else on all interfaces.

    The name of a host is not resolved, because on the host itself it may resolve to a loopback address.
    """
    if host == "localhost" or host.replace(".", "").isdecimal() or ":" in host:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return close_in_children(socket.create_server((host, port), family=family, backlog=_BACKLOG))
    is_dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if is_dual else socket.AF_INET
    server = socket.create_server(("", port), family=family, backlog=_BACKLOG, dualstack_ipv6=is_dual)
    return close_in_children(server)


def connect(host: str, port: int, seconds: float) -> socket.socket:
    """Return a connection to a TCP port; raise OSError if it is not established within `seconds`."""
    connection = close_in_children(socket.create_connection((host, port), seconds))
    if connection.getsockname() == connection.getpeername():  # no listener: the socket connected to itself
        connection.close()
        raise ConnectionRefusedError("Connection refused")
    return connection


def authenticate(connection: socket.socket, secret: bytes, is_client: bool, deadline: Deadline) -> None:
    """Prove to the peer that this process knows the secret, and verify its proof.

    Also sets socket options, so that a lost peer is detected after `LOSS_SECONDS`. Raises NotAuthentic, or OSError if
    the peer closes the connection or does not answer in time.
    """
    keepalive = {"TCP_KEEPIDLE": 2, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": LOSS_SECONDS - 2}
    for name, value in {"TCP_NODELAY": 1, **keepalive, "TCP_USER_TIMEOUT": 1000 * LOSS_SECONDS}.items():
        with contextlib.suppress(AttributeError):  # some systems lack some of these options
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    mine = secrets.token_bytes(_CHALLENGE_BYTES)
    _write(connection, _PROTOCOL + mine, deadline)
    if _read(connection, len(_PROTOCOL), deadline) != _PROTOCOL:
        raise NotAuthentic("is not a task of a ringlet cluster, or has a different version of ringlet")
    other = _read(connection, _CHALLENGE_BYTES, deadline)
    challenges = mine + other if is_client else other + mine
    proofs = [hmac.digest(secret, role + challenges, "sha256") for role in (b"server", b"client")]
    if is_client:
        _write(connection, proofs[True], deadline)
    is_authentic = hmac.compare_digest(_read(connection, _PROOF_BYTES, deadline), proofs[not is_client])
    if not is_client:
        _write(connection, proofs[False] if is_authentic else bytes(_PROOF_BYTES), deadline)
    if not is_authentic:
        raise NotAuthentic("has a different RINGLET_SECRET: set the same value for all tasks")


def send_object(connection: socket.socket, value: dict[str, Any], deadline: Deadline) -> None:
    """Send a JSON object."""
    data = json.dumps(value).encode("ascii")
    _write(connection, len(data).to_bytes(4, "little") + data, deadline)


def receive_object(connection: socket.socket, deadline: Deadline) -> dict[str, Any]:
    """Receive a JSON object from an authenticated peer; raise NotAuthentic if the data is not a JSON object."""
    length = int.from_bytes(_read(connection, 4, deadline), "little")
    with contextlib.suppress(ValueError, RecursionError):
        if length <= _MOST_JSON_BYTES and isinstance(value := json.loads(_read(connection, length, deadline)), dict):
            return value
    raise NotAuthentic("has sent data that is not a message of ringlet")


def _write(connection: socket.socket, data: bytes, deadline: Deadline) -> None:
    connection.settimeout(max(deadline.left(60.0), 0.001))  # 0 would mean non-blocking
    connection.sendall(data)


def _read(connection: socket.socket, count: int, deadline: Deadline) -> bytes:
    data = b""
    while len(data) < count:
        connection.settimeout(max(deadline.left(60.0), 0.001))
        received = connection.recv(count - len(data))
        if not received:
            raise ConnectionResetError("the connection was closed during the handshake")
        data += received
    return data
