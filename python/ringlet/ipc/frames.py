"""Message framing: encoding and validation of the bytes before the buffers of a message.

    head          magic, sequence number, size of the header, number of buffers, number of descriptors,
                  CRC of sizes and header, CRC of the head
    sizes         8 bytes for each buffer
    header
    buffers       concatenated

Memory for sizes and header is allocated after the head is validated, memory for buffers after the sizes are validated.
Buffers have no checksum.
"""

from __future__ import annotations

import struct
from binascii import crc32
from collections.abc import Sequence
from dataclasses import dataclass

_HEAD = struct.Struct("<4sIIIIII")
_MAGIC = b"RLf1"
_NUMBERS = 2**32

HEAD_BYTES = _HEAD.size
MOST_BUFFERS = 65536
MOST_DESCRIPTORS = 64
_MOST_HEADER_BYTES = 1 << 30


class BadFrame(ValueError):
    """The received data is invalid; the text is a predicate whose subject is the peer, such as "has sent ..."."""


@dataclass(frozen=True)
class Head:
    """The head of a message; `check` is the CRC of sizes and header."""

    header_bytes: int
    num_buffers: int
    num_descriptors: int
    check: int

    @property
    def rest_bytes(self) -> int:
        """Number of bytes between the head and the first buffer."""
        return 8 * self.num_buffers + self.header_bytes

    @classmethod
    def read(cls, data: memoryview, number: int) -> Head:
        """Parse the head of the message with the given sequence number; raise BadFrame if it is invalid."""
        magic, its_number, header_bytes, num_buffers, num_descriptors, check, own = _HEAD.unpack(data)
        if magic != _MAGIC or own != crc32(data[:-4]):
            raise BadFrame("has sent data that is not a ringlet message")
        if its_number != number % _NUMBERS:
            raise BadFrame(f"has sent message {its_number} instead of {number % _NUMBERS}")
        if header_bytes > _MOST_HEADER_BYTES or num_buffers > MOST_BUFFERS or num_descriptors > MOST_DESCRIPTORS:
            raise BadFrame(
                f"has sent a message of {header_bytes} header bytes, {num_buffers} buffers and {num_descriptors} "
                f"descriptors, but at most {_MOST_HEADER_BYTES}, {MOST_BUFFERS} and {MOST_DESCRIPTORS} are allowed"
            )
        return cls(header_bytes, num_buffers, num_descriptors, check)


def frame_start(number: int, header: bytes, sizes: Sequence[int], num_descriptors: int) -> bytes:
    """Encode a message up to its buffers; `sizes` are the sizes of the buffers in bytes.

    `number` counts the messages of a connection, from 0. Raises ValueError if the message exceeds a limit.
    """
    if len(header) > _MOST_HEADER_BYTES or len(sizes) > MOST_BUFFERS or num_descriptors > MOST_DESCRIPTORS:
        raise ValueError(
            f"a message has at most {_MOST_HEADER_BYTES} bytes of header, {MOST_BUFFERS} buffers and "
            f"{MOST_DESCRIPTORS} descriptors, got {len(header)}, {len(sizes)} and {num_descriptors}: split the message"
        )
    rest = struct.pack(f"<{len(sizes)}Q", *sizes) + header
    numbers = (_MAGIC, number % _NUMBERS, len(header), len(sizes), num_descriptors, crc32(rest))
    head = _HEAD.pack(*numbers, 0)[:-4]
    return head + crc32(head).to_bytes(4, "little") + rest


def read_sizes(head: Head, rest: memoryview, most_bytes: int) -> tuple[list[int], bytes]:
    """Parse and validate the bytes between head and buffers; return the sizes of the buffers and the header.

    Raises BadFrame if the checksum fails, or if the buffers have more than `most_bytes` in total.
    """
    if crc32(rest) != head.check:
        raise BadFrame("has sent a message that failed its checksum")
    table = 8 * head.num_buffers
    sizes = list(struct.unpack(f"<{head.num_buffers}Q", rest[:table]))
    if sum(sizes) > most_bytes:
        raise BadFrame(f"has sent a message of {sum(sizes)} bytes, but at most {most_bytes} are allowed")
    return sizes, bytes(rest[table:])
