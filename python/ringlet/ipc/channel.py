"""What a connection between two processes can do, whatever carries it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Buffer", "Channel", "ChannelClosed", "Message", "OpenFile"]

# Anything that has contiguous memory: bytes, a memoryview, an array.
Buffer = Any


class _HasFile(Protocol):
    def fileno(self) -> int: ...


# The number of an open file, or what keeps one open: a socket, a table.
OpenFile: TypeAlias = "int | _HasFile"


class ChannelClosed(ConnectionError):
    """One peer is gone, or has sent what cannot be read: its channel is closed, and nothing else is disturbed.

    What could not be read is its cause.

    Attributes
    ----------
    peer : str
        Who was at the other end.
    reason : str
        What was seen.

    Examples
    --------
    >>> str(ChannelClosed("/job:worker/task:1", "has closed its connection"))
    '/job:worker/task:1 has closed its connection'
    """

    def __init__(self, peer: str, reason: str) -> None:
        super().__init__(peer, reason)
        self.peer = peer
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.peer} {self.reason}"


class Message(NamedTuple):
    """What one call of :meth:`Channel.send` has sent.

    Attributes
    ----------
    header : bytes
    buffers : list of ndarray of uint8
        Writeable, and owned by the receiver.
    descriptors : list of int
        Which the receiver closes.
    """

    header: bytes
    buffers: list[npt.NDArray[np.uint8]]
    descriptors: list[int]


class Channel(Protocol):
    """A connection to one peer, over which messages arrive whole and in order, or not at all.

    Any thread may send; one thread at a time receives. Each method raises `ChannelClosed` once the peer is gone.
    """

    peer: str
    """Who is at the other end, as messages name it."""

    def send(self, header: bytes, buffers: Sequence[Buffer] = (), descriptors: Sequence[OpenFile] = ()) -> None:
        """Send a message, waiting until the peer has room for it.

        Parameters
        ----------
        header : bytes
        buffers : sequence of buffers
            Contiguous memory, sent without a copy.
        descriptors : sequence of OpenFile
            The peer gets them, too.
        """

    def post(self, header: bytes, buffers: Sequence[Buffer] = (), descriptors: Sequence[OpenFile] = ()) -> bool:
        """Send a message without waiting.

        What the peer has no room for now is sent by later calls of `flush`. Buffers must not change before, nor numbers
        of files come to mean others; objects are kept.

        Returns
        -------
        bool
            Whether everything posted has been sent.
        """

    def flush(self) -> bool:
        """Send what is left of posted messages, without waiting; tell whether everything has been sent."""

    def receive(self) -> Message:
        """Give the next message, waiting as long as it takes."""

    def poll(self) -> Message | None:
        """Give the next message if all of it has arrived; never wait."""

    def fileno(self) -> int:
        """Give a descriptor that can be read when `poll` has something to do, and written to when `flush` has."""

    def close(self) -> None:
        """Close the connection; once is enough. What was posted, and not sent, is dropped."""
