"""Channel: the interface of a message connection between two processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

# Any object with contiguous memory: bytes, a memoryview, an array.
Buffer = Any


class _HasFile(Protocol):
    def fileno(self) -> int: ...


# A file descriptor, or an object that owns one, such as a socket.
OpenFile: TypeAlias = "int | _HasFile"


class ChannelClosed(ConnectionError):
    """The channel is closed; `reason` is a predicate about the peer, and the cause may be a `BadFrame`."""

    def __init__(self, peer: str, reason: str) -> None:
        super().__init__(peer, reason)
        self.peer = peer
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.peer} {self.reason}"


class Message(NamedTuple):
    """One message, as sent by one call of :meth:`Channel.send`.

    The receiver owns the buffers, which are writeable, and must close the descriptors.
    """

    header: bytes
    buffers: list[npt.NDArray[np.uint8]]
    descriptors: list[int]


class Channel(Protocol):
    """A connection to one peer that delivers whole messages in order.

    Any thread may send; one thread at a time may receive. Either raises `ChannelClosed` once the channel is closed.
    """

    peer: str
    """Name of the peer in messages."""

    is_remote: bool
    """Whether the peer may be on another host, to which no descriptors can be sent."""

    @property
    def was_closed_here(self) -> bool:
        """Whether this process has closed the channel, or is a forked child, in which it is closed."""

    def send(self, header: bytes, buffers: Sequence[Buffer] = (), descriptors: Sequence[OpenFile] = ()) -> None:
        """Send a message; block until all of it is written.

        Buffers are contiguous memory, sent without a copy; the peer receives duplicates of the descriptors.
        """

    def post(self, header: bytes, buffers: Sequence[Buffer] = (), descriptors: Sequence[OpenFile] = ()) -> bool:
        """Send a message without waiting; return whether all posted messages have been sent.

        `flush` sends the rest. Until all is sent, the buffers must not change, and descriptors passed as int must stay
        open; objects that own descriptors are kept alive.
        """

    def flush(self) -> bool:
        """Send as many posted messages as possible without blocking; return whether all have been sent."""

    def receive(self) -> Message:
        """Return the next message; block until it has arrived."""

    def poll(self) -> Message | None:
        """Return the next message if all of it has arrived, else None."""

    def fileno(self) -> int:
        """Return the descriptor for ``select``: call `poll` when it is readable, `flush` when it is writable."""

    def close(self) -> None:
        """Close the connection, idempotently. Unsent posted messages are dropped."""
