from __future__ import annotations

import pytest

from ringlet.data import FixedLengthRecordDataset
from ringlet.errors import DataLossError, InvalidArgumentError
from tests.data.readers.files import assert_restores, outcome, put


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_records_are_what_lies_between_header_and_footer(tmp_path, compression):
    records = [b"%05d" % number for number in range(5000)]
    name = put(tmp_path / "file", b"HEAD" + b"".join(records) + b"FOOT!", compression)

    def make():
        return FixedLengthRecordDataset([name, name], 5, 4, 5, buffer_size=0, compression_type=compression)

    assert list(make()) == records * 2
    assert_restores(make, [0, 1, 999, 5000, 5001, 10_000])


@pytest.mark.parametrize(
    ("data", "body"),
    [
        # file, bytes between header and footer
        (b"HH123F", 3),
        (b"", -3),
        (b"H", -2),
    ],
)
def test_a_size_that_does_not_fit_is_refused_before_the_first_record(tmp_path, data, body):
    good = put(tmp_path / "good", b"HH12F")
    dataset = FixedLengthRecordDataset([put(tmp_path / "bad", data), good], 2, 2, 1)
    with pytest.raises(InvalidArgumentError, match=f"has body length {body} bytes, which is not an exact multiple"):
        next(iter(dataset))
    assert outcome(dataset) == ["InvalidArgumentError", b"12"]


@pytest.mark.parametrize(("data", "records"), [(b"HH123F", [b"12"]), (b"H", []), (b"HH", []), (b"", [])])
def test_a_compressed_size_that_does_not_fit_is_seen_at_the_end(tmp_path, data, records):
    name = put(tmp_path / "bad", data, "GZIP")
    dataset = FixedLengthRecordDataset(name, 2, 2, 1, compression_type="GZIP")
    assert outcome(dataset) == [*records, "DataLossError"]
    with pytest.raises(DataLossError) as caught:
        list(dataset)
    assert caught.value.file == name


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(InvalidArgumentError, match="record_bytes must be greater than zero, got 0"):
        FixedLengthRecordDataset("x", 0)
    with pytest.raises(InvalidArgumentError, match="footer_bytes must be zero or more, got -1"):
        FixedLengthRecordDataset("x", 1, footer_bytes=-1)
    with pytest.raises(TypeError, match=r"record_bytes must be a number of bytes, got 1\.5"):
        FixedLengthRecordDataset("x", 1.5)
