from __future__ import annotations

import gzip
import zlib

import pytest

from ringlet.data.readers.byte_stream import check_compression, open_bytes
from ringlet.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from tests.data.readers.files import put

TEXT = bytes(range(256)) * 1000


def read_all(name: str, compression: str, skip: int = 0, piece: int = 1000) -> bytes:
    stream = open_bytes(name, compression)
    if skip:
        stream.skip(skip)
    memory, found = bytearray(piece), b""
    while count := stream.read_into(memoryview(memory)):
        found += memory[:count]
    assert stream.offset == skip + len(found)
    stream.close()
    return found


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_the_bytes_of_a_file_come_in_order_and_decompressed(tmp_path, compression):
    name = put(tmp_path / "file", TEXT, compression)
    assert read_all(name, compression) == TEXT
    assert read_all(name, compression, skip=70_001) == TEXT[70_001:]


def test_gzip_frames_follow_each_other(tmp_path):
    name = put(tmp_path / "file", gzip.compress(b"one") + gzip.compress(b"") + gzip.compress(b"two"))
    assert read_all(name, "GZIP") == b"onetwo"


def test_bytes_behind_a_zlib_frame_are_passed_over(tmp_path):
    name = tmp_path / "file"
    put(name, b"one", "ZLIB")
    put(name, name.read_bytes() + b"rest")
    assert read_all(str(name), "ZLIB") == b"one"


def test_a_file_that_is_not_compressed_is_data_loss_with_file_and_offset(tmp_path):
    name = put(tmp_path / "file", b"plain text")
    with pytest.raises(DataLossError, match=r"inflate\(\) failed with error -3: incorrect header check") as caught:
        read_all(name, "GZIP")
    assert (caught.value.file, caught.value.offset) == (name, 0)


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_a_compressed_file_that_is_cut_short_anywhere_is_data_loss_behind_what_it_has(tmp_path, kind):
    whole = gzip.compress(b"abc") if kind == "GZIP" else zlib.compress(b"abc")
    for size in range(1, len(whole)):
        stream = open_bytes(put(tmp_path / "file", whole[:size]), kind)
        found = bytearray(100)
        with pytest.raises(DataLossError, match="ends within its compressed data") as caught:
            [*iter(lambda stream=stream, found=found: stream.read_into(memoryview(found)[stream.offset :]), 0)]
        assert found[: stream.offset] == b"abc"[: stream.offset]
        assert (caught.value.file, caught.value.offset) == (str(tmp_path / "file"), stream.offset)
    assert read_all(put(tmp_path / "file", b""), kind) == b""


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NotFoundError, match="absent; No such file or directory"):
        open_bytes(str(tmp_path / "absent"), "")
    with pytest.raises(NotFoundError, match="Not a directory"):
        open_bytes(put(tmp_path / "file", b"") + "/inside", "")


def test_a_directory_is_refused(tmp_path):
    with pytest.raises(FailedPreconditionError, match="Is a directory"):
        open_bytes(str(tmp_path), "GZIP")


def test_the_bytes_that_are_left_are_known_of_a_plain_file_only(tmp_path):
    plain = open_bytes(put(tmp_path / "file", b"12345"), "")
    plain.skip(2)
    assert plain.bytes_left == 3
    assert open_bytes(put(tmp_path / "packed", b"12345", "GZIP"), "GZIP").bytes_left is None


def test_a_compression_that_is_not_known_is_refused_with_those_that_are():
    with pytest.raises(InvalidArgumentError, match=r"Unsupported compression_type: 'LZ4'. Use 'GZIP', 'ZLIB'"):
        check_compression("LZ4")
