"""Messages as bytes."""

from __future__ import annotations

import struct
from binascii import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.ipc.frames import (
    HEAD_BYTES,
    MOST_BUFFERS,
    MOST_DESCRIPTORS,
    BadFrame,
    Head,
    frame_start,
    read_sizes,
)


def read(data, number=0, most_bytes=1 << 40):
    start = memoryview(data)
    head = Head.read(start[:HEAD_BYTES], number)
    assert len(data) == HEAD_BYTES + head.rest_bytes
    return (*read_sizes(head, start[HEAD_BYTES:], most_bytes), head.num_descriptors)


@given(
    st.integers(0, 2**40), st.binary(), st.lists(st.integers(0, 2**30), max_size=20), st.integers(0, MOST_DESCRIPTORS)
)
def test_what_was_written_is_read(number, header, sizes, num_descriptors):
    assert read(frame_start(number, header, sizes, num_descriptors), number) == (sizes, header, num_descriptors)


@given(st.data())
def test_a_message_with_any_byte_changed_is_refused(data):
    start = bytearray(frame_start(7, b"header", [3, 2**40], 2))
    start[data.draw(st.integers(0, len(start) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(BadFrame, match=r"not a ringlet message|failed its checksum"):
        read(bytes(start), 7)


def test_a_message_of_another_kind_is_refused_although_its_check_is_right():
    head = struct.pack("<4sIIIII", b"RLf2", 0, 0, 0, 0, 0)
    with pytest.raises(BadFrame, match="not a ringlet message"):
        Head.read(memoryview(head + crc32(head).to_bytes(4, "little")), 0)


def test_a_message_that_comes_again_or_is_left_out_is_refused():
    for number in (6, 8):
        with pytest.raises(BadFrame, match=f"has sent message {number} instead of 7"):
            read(frame_start(number, b"", [], 0), 7)


def test_a_message_that_is_too_large_is_refused_before_its_buffers():
    with pytest.raises(BadFrame, match="a message of 101 bytes, but at most 100 are allowed"):
        read(frame_start(0, b"", [60, 41], 0), most_bytes=100)


def test_a_head_that_announces_too_much_is_refused():
    for numbers in ((2**31, 0, 0), (0, MOST_BUFFERS + 1, 0), (0, 0, MOST_DESCRIPTORS + 1)):
        head = struct.pack("<4sIIIII", b"RLf1", 0, *numbers, 0)
        with pytest.raises(BadFrame, match=r"has sent a message of .* are allowed"):
            Head.read(memoryview(head + crc32(head).to_bytes(4, "little")), 0)


@pytest.mark.parametrize(("sizes", "num_descriptors"), [([0] * (MOST_BUFFERS + 1), 0), ([], MOST_DESCRIPTORS + 1)])
def test_a_message_that_nobody_would_take_is_not_made(sizes, num_descriptors):
    with pytest.raises(ValueError, match="split the message"):
        frame_start(0, b"", sizes, num_descriptors)
