"""Messages as bytes of a stream: what stands before the buffers, written, read and checked.

    head          magic, number, bytes of the header, buffers, descriptors, check of what follows, check of the head
    sizes         of each buffer, 8 bytes
    header
    buffers       one after the other

The head is checked before anything is allocated for what it announces, the sizes before anything is for the buffers.
Buffers are not checked: the system does not change bytes between two processes of one machine.
"""

from __future__ import annotations

import struct
from binascii import crc32
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["HEAD_BYTES", "MOST_BUFFERS", "MOST_DESCRIPTORS", "BadFrame", "Head", "frame_start", "read_sizes"]

_HEAD = struct.Struct("<4sIIIIII")
_MAGIC = b"RLf1"
_NUMBERS = 2**32

HEAD_BYTES = _HEAD.size
MOST_BUFFERS = 65536
MOST_DESCRIPTORS = 64
_MOST_HEADER_BYTES = 1 << 30


class BadFrame(ValueError):
    """What came is no message of ours; the text says what was seen."""


@dataclass(frozen=True)
class Head:
    """What the head of a message announces.

    Attributes
    ----------
    header_bytes, num_buffers, num_descriptors : int
    check : int
        Of sizes and header.
    """

    header_bytes: int
    num_buffers: int
    num_descriptors: int
    check: int

    @property
    def rest_bytes(self) -> int:
        """How many bytes come between the head and the first buffer."""
        return 8 * self.num_buffers + self.header_bytes

    @classmethod
    def read(cls, data: memoryview, number: int) -> Head:
        """Read and check a head.

        Parameters
        ----------
        data : memoryview, of ``HEAD_BYTES``
        number : int
            Which message of the connection it must be of, from 0.

        Raises
        ------
        BadFrame
            If it is none, or of another message.
        """
        magic, its_number, header_bytes, num_buffers, num_descriptors, check, own = _HEAD.unpack(data)
        if magic != _MAGIC or own != crc32(data[:-4]):
            raise BadFrame("has sent what is no message of ours")
        if its_number != number % _NUMBERS:
            raise BadFrame(f"has sent message {its_number} in place of {number % _NUMBERS}")
        if header_bytes > _MOST_HEADER_BYTES or num_buffers > MOST_BUFFERS or num_descriptors > MOST_DESCRIPTORS:
            raise BadFrame("has sent a message that is too large")
        return cls(header_bytes, num_buffers, num_descriptors, check)


def frame_start(number: int, header: bytes, sizes: Sequence[int], num_descriptors: int) -> bytes:
    """Write everything of a message but its buffers.

    Parameters
    ----------
    number : int
        Which message of the connection it is, from 0.
    header : bytes
    sizes : sequence of int
        Of the buffers, in bytes.
    num_descriptors : int

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        If there is too much of something.

    Examples
    --------
    >>> start = memoryview(frame_start(0, b"header", [3], 0))
    >>> head = Head.read(start[:HEAD_BYTES], 0)
    >>> read_sizes(head, start[HEAD_BYTES:], most_bytes=10)
    ([3], b'header')
    """
    if len(header) > _MOST_HEADER_BYTES or len(sizes) > MOST_BUFFERS or num_descriptors > MOST_DESCRIPTORS:
        raise ValueError(
            f"a message has at most {_MOST_HEADER_BYTES} bytes of header, {MOST_BUFFERS} buffers and "
            f"{MOST_DESCRIPTORS} descriptors, not {len(header)}, {len(sizes)} and {num_descriptors}: send several"
        )
    rest = struct.pack(f"<{len(sizes)}Q", *sizes) + header
    numbers = (_MAGIC, number % _NUMBERS, len(header), len(sizes), num_descriptors, crc32(rest))
    head = _HEAD.pack(*numbers, 0)[:-4]
    return head + crc32(head).to_bytes(4, "little") + rest


def read_sizes(head: Head, rest: memoryview, most_bytes: int) -> tuple[list[int], bytes]:
    """Read and check what stands between the head and the buffers.

    Parameters
    ----------
    head : Head
    rest : memoryview, of ``head.rest_bytes``
    most_bytes : int
        How much all buffers may have.

    Returns
    -------
    tuple
        Sizes of the buffers in bytes, and the header.

    Raises
    ------
    BadFrame
        If it is not what was sent, or the buffers are too large.
    """
    if crc32(rest) != head.check:
        raise BadFrame("has sent a message that was changed on its way")
    table = 8 * head.num_buffers
    sizes = list(struct.unpack(f"<{head.num_buffers}Q", rest[:table]))
    if sum(sizes) > most_bytes:
        raise BadFrame(f"has sent a message of {sum(sizes)} bytes; at most {most_bytes} are taken")
    return sizes, bytes(rest[table:])
