from __future__ import annotations

import pytest

from ringlet.data.readers.byte_stream import open_bytes
from ringlet.data.readers.file_blocks import BlockBuffer, buffer_bytes, no_negative
from ringlet.errors import InvalidArgumentError
from tests.data.readers.files import put


def buffer_of(path, data, size, compression=""):
    return BlockBuffer(open_bytes(put(path, data, compression), compression), size)


def test_a_buffer_keeps_what_was_not_taken_in_front_of_what_it_reads(tmp_path):
    buffer = buffer_of(tmp_path / "file", b"abcdefgh", 4)
    buffer.fill()
    buffer.begin = 3
    buffer.fill()
    assert bytes(buffer.data[: buffer.end]) == b"defg"
    assert buffer.offset == 3
    assert not buffer.is_at_end
    buffer.begin = 4
    buffer.fill()
    buffer.fill()
    assert (len(buffer), buffer.is_at_end) == (1, True)


def test_a_buffer_grows_to_what_the_file_has_and_not_to_what_is_claimed(tmp_path):
    buffer = buffer_of(tmp_path / "file", b"x" * 100, 10)
    buffer.fill()
    assert not buffer.grow(2**63)
    assert len(buffer.data) == 10
    assert buffer.grow(100)
    assert len(buffer.data) == 100


def test_a_buffer_of_a_compressed_file_doubles_with_what_was_read(tmp_path):
    buffer = buffer_of(tmp_path / "file", b"x" * 100, 10, "GZIP")
    buffer.fill()
    assert buffer.grow(2**63)
    assert len(buffer.data) == 20


def test_sizes_that_are_no_numbers_of_bytes_are_refused():
    with pytest.raises(TypeError, match="buffer_size is a number of bytes"):
        buffer_bytes("1 MiB")
    with pytest.raises(TypeError, match="header_bytes is a number of bytes"):
        no_negative("4", "header_bytes")
    with pytest.raises(InvalidArgumentError, match="header_bytes must be zero or more, got -1"):
        no_negative(-1, "header_bytes")
