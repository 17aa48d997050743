from __future__ import annotations

import gzip
import logging
import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet import _core
from ringlet.data import TFRecordDataset
from ringlet.errors import DataLossError
from tests.data.readers.files import assert_restores, outcome, put, put_records

SIZES = [0, 1, 5, 4079, 4080, 4081, 4096, 20_000, 100, 300_000, 7]
RECORDS = [bytes([number % 256]) * size for number, size in enumerate(SIZES * 3)]


def frame(records):
    return b"".join(map(_core.frame_record, records))


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("buffer_size", [0, 5000, None])
def test_what_was_written_is_read(tmp_path, compression, buffer_size):
    name = put_records(tmp_path / "file", RECORDS, compression)
    dataset = TFRecordDataset([name, name], compression, buffer_size)
    assert list(dataset) == RECORDS * 2
    assert [record for batch in dataset.batch(7) for record in batch] == RECORDS * 2


@pytest.mark.parametrize("compression", ["", "GZIP"])
@pytest.mark.parametrize("reads", [None, 2])
def test_a_state_is_restored_exactly(tmp_path, compression, reads):
    names = [put_records(tmp_path / f"part-{part}", RECORDS[part::3], compression) for part in range(3)]
    assert_restores(lambda: TFRecordDataset(names, compression, 0, reads), [0, 1, 8, 20, 33])


@pytest.mark.parametrize(
    ("record", "at", "offset", "words"),
    [
        # number of the record of 10 bytes that is damaged, byte of it, offset of the error, words
        (0, 0, 0, r"corrupted record at 0 \(Is this even a TFRecord file\?\)"),
        (0, 11, 0, r"corrupted record at 0 \(Is this even"),
        (0, 12, 12, "corrupted record at 12 of"),
        (2, 7, 52, "corrupted record at 52 of"),
        (2, 25, 64, "corrupted record at 64 of"),
    ],
)
def test_damage_is_named_with_file_and_offset_behind_the_records_in_front_of_it(tmp_path, record, at, offset, words):
    data = bytearray(frame([b"0123456789"] * 4))
    data[record * 26 + at] ^= 1
    dataset = TFRecordDataset([put(tmp_path / "bad", bytes(data)), put_records(tmp_path / "good", [b"next"])])
    assert outcome(dataset) == [*[b"0123456789"] * record, "DataLossError", b"next"]
    with pytest.raises(DataLossError, match=words) as caught:
        list(dataset)
    assert (caught.value.file, caught.value.offset) == (str(tmp_path / "bad"), offset)


@pytest.mark.parametrize("compression", ["", "GZIP"])
@pytest.mark.parametrize("length", [1000, 2**31, 2**62, 2**63, 2**64 - 5, 2**64 - 1])
def test_a_length_beyond_the_end_is_a_truncated_record_and_takes_no_memory(tmp_path, compression, length):
    size = struct.pack("<Q", length)
    crc = _core.crc32c(size)
    header = size + struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
    name = put(tmp_path / "file", frame([b"one"]) + header + b"x" * 100, compression)
    dataset = TFRecordDataset(name, compression)
    assert outcome(dataset) == [b"one", "DataLossError"]
    tracemalloc.start()
    try:
        with pytest.raises(
            DataLossError, match=r"truncated record at 19 of .*: failed with Read less bytes than"
        ) as caught:
            list(dataset)
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()
    assert caught.value.offset == 19


def test_a_file_that_ends_within_a_header_ends_there_and_is_warned_of(tmp_path, caplog):
    name = put(tmp_path / "file", frame([b"one", b"two"])[:-8])
    with caplog.at_level(logging.WARNING):
        assert list(TFRecordDataset(name)) == [b"one"]
    assert "is truncated at offset 19" in caplog.text
    caplog.clear()
    assert list(TFRecordDataset(put(tmp_path / "whole", frame([b"one"])))) == [b"one"]
    assert caplog.text == ""


def test_a_file_that_is_compressed_and_read_as_if_it_was_not_is_told_so(tmp_path):
    name = put_records(tmp_path / "file", [b"one"], "GZIP")
    with pytest.raises(DataLossError, match=r"has a GZIP header\. Pass compression_type='GZIP'"):
        list(TFRecordDataset(name))


def test_an_unknown_compression_counts_as_none_and_is_warned_of(tmp_path, caplog):
    name = put_records(tmp_path / "file", [b"one"])
    with caplog.at_level(logging.WARNING):
        assert list(TFRecordDataset(name, "LZ4")) == [b"one"]
    assert "supports the compressions GZIP, ZLIB, not 'LZ4'" in caplog.text


changes = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3)


@given(
    records=st.lists(st.binary(max_size=40), max_size=4),
    changes=changes,
    keep=st.integers(0, 300),
    compression=st.sampled_from(["", "GZIP"]),
)
def test_whatever_a_file_holds_reading_ends_with_records_or_data_loss(
    records, changes, keep, compression, tmp_path_factory
):
    data = bytearray(frame(records) if not compression else gzip.compress(frame(records)))
    for at, value in changes:
        if data:
            data[at % len(data)] = value
    name = put(tmp_path_factory.mktemp("fuzz") / "file", bytes(data[:keep]))
    found = outcome(TFRecordDataset(name, compression))
    assert all(isinstance(item, bytes) for item in found[:-1])
    assert found[-1:] == [] or isinstance(found[-1], bytes) or found[-1] == "DataLossError"
    if not changes:
        assert [item for item in found if isinstance(item, bytes)] == records[
            : len(found) - found.count("DataLossError")
        ]


def test_checksums_are_the_same_on_every_way_that_the_cpu_has():
    data = bytes(range(256)) * 40
    for size in (0, 1, 7, 8, 383, 384, 6143, 6144, 10_240):
        assert set(_core.crc32c_by_target(data[:size]).values()) == {_core.crc32c(data[:size])}
    assert _core.crc32c(b"123456789") == 0xE3069283
    assert _core.crc32c(data[100:], _core.crc32c(data[:100])) == _core.crc32c(data)
