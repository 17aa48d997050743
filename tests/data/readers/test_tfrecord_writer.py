from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ringlet.data import TFRecordDataset, TFRecordWriter
from ringlet.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError


@pytest.mark.parametrize("options", [None, "", "GZIP", "ZLIB", SimpleNamespace(compression_type="GZIP")])
def test_what_was_flushed_is_in_the_file(tmp_path, options):
    path = tmp_path / "file"
    compression = getattr(options, "compression_type", options)
    with TFRecordWriter(path, options) as writer:
        writer.write(b"one")
        writer.write(bytearray(b"two"))
        writer.write(memoryview(np.array([1, 2], np.uint8)))
        writer.flush()
        records = iter(TFRecordDataset(path, compression))
        assert [next(records) for _ in range(3)] == [b"one", b"two", b"\x01\x02"]
        with pytest.raises(DataLossError if compression else StopIteration):
            next(records)  # a compressed file is complete when it is closed
        writer.write(b"three")
    assert list(TFRecordDataset(path, compression))[-1] == b"three"


def test_the_same_records_make_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        with TFRecordWriter(tmp_path / name, "GZIP") as writer:
            writer.write(b"record")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_text_is_written_as_utf8_and_numbers_are_refused(tmp_path):
    with TFRecordWriter(tmp_path / "file") as writer:
        writer.write("té")
        with pytest.raises(TypeError):
            writer.write(7)
    assert list(TFRecordDataset(tmp_path / "file")) == ["té".encode()]


def test_a_closed_writer_refuses_to_write(tmp_path):
    writer = TFRecordWriter(tmp_path / "file")
    writer.close()
    writer.close()
    with pytest.raises(FailedPreconditionError, match="is closed"):
        writer.write(b"late")
    with pytest.raises(FailedPreconditionError, match="is closed"):
        writer.flush()


def test_a_compression_or_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match="Unsupported compression_type: 'gzip'"):
        TFRecordWriter(tmp_path / "file", "gzip")
    with pytest.raises(NotFoundError, match="No such file or directory"):
        TFRecordWriter(tmp_path / "no" / "file")
