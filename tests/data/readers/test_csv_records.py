"""Records of CSV files."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringlet.data.readers.csv_records import Dialect, RecordBlocks
from ringlet.errors import DataLossError

DIALECT = Dialect(b",", True, False)


def read(path, size=4096, dialect=DIALECT, compression=""):
    blocks = RecordBlocks(str(path), dialect, compression, size)
    records = []
    while block := blocks.next_block():
        records += block
    return records


# content, fields of each record
CONTENTS = [
    (b"a,b\nc,d", [[b"a", b"b"], [b"c", b"d"]]),
    (b"a,b\r\nc,d\r\n", [[b"a", b"b"], [b"c", b"d"]]),
    (b"a\rb\n", [[b"a"], [b"b"]]),
    (b",\n\n,", [[b"", b""], [b""], [b"", b""]]),
    (b'"a,""b""\r\nc",d\n"",x\n', [[b'a,"b"\r\nc', b"d"], [b"", b"x"]]),
    (b'a,"b"', [[b"a", b"b"]]),
    (b'"a"\r"b"\r', [[b"a"], [b"b"]]),
    (b"", []),
]


@pytest.mark.parametrize("size", [1, 2, 3, 4096])
@pytest.mark.parametrize(("content", "fields"), CONTENTS)
def test_records_are_split_where_rfc_4180_says(tmp_path, content, fields, size):
    (tmp_path / "f").write_bytes(content)
    records = read(tmp_path / "f", size)
    assert [record.fields for record in records] == fields
    assert not any(record.error for record in records)


@given(
    rows=st.lists(st.lists(st.binary(max_size=5), min_size=2, max_size=3), max_size=8),
    size=st.integers(1, 40),
    end=st.sampled_from([b"\n", b"\r\n"]),
)
@example(rows=[[b"", b'a"\n']], size=1, end=b"\n")  # a block ends inside a field, after an escaped quote and a line
def test_whatever_is_quoted_comes_back(tmp_path_factory, rows, size, end):
    path = tmp_path_factory.mktemp("csv") / "f"
    path.write_bytes(b"".join(b",".join(b'"%s"' % f.replace(b'"', b'""') for f in row) + end for row in rows))
    assert [record.fields for record in read(path, size)] == rows


def test_a_wrong_record_says_what_and_where_and_the_next_one_comes(tmp_path):
    (tmp_path / "f").write_bytes(b'"1\n2",x\n3,a"b\n"4"5\n6\n"7\n8\n')
    found = [(r.line, r.fields, r.error) for r in read(tmp_path / "f", 3)]
    assert found == [
        (1, [b"1\n2", b"x"], ""),
        (3, [], "Unquoted fields cannot have quotes inside"),
        (4, [], "Quote inside a string has to be escaped by another quote"),
        (5, [b"6"], ""),
        (6, [], "Reached end of file without closing quoted field in record"),
    ]


def test_a_place_is_found_again(tmp_path):
    (tmp_path / "f").write_bytes(b"head\n" + b'"a\nb",1\nc,2\n' * 50)
    dialect = DIALECT._replace(has_header=True)
    records = read(tmp_path / "f", 64, dialect)
    for offset in (0, 1, 37, 99, 100):
        blocks = RecordBlocks(str(tmp_path / "f"), dialect, "", 16)
        blocks.skip_to(offset)
        block = blocks.next_block()
        assert blocks.offset == offset
        assert list(block) == records[offset : offset + len(block)]
        assert bool(block) == (offset < 100)


def test_quotes_may_be_characters(tmp_path):
    (tmp_path / "f").write_bytes(b'"a,b"\n')
    assert read(tmp_path / "f", dialect=Dialect(b",", False, False))[0].fields == [b'"a', b'b"']


def test_records_in_front_of_damage_come_first(tmp_path):
    packed = gzip.compress(b"".join(b"%d,b\n" % i for i in range(100)))
    (tmp_path / "f").write_bytes(packed[:-8])
    blocks = RecordBlocks(str(tmp_path / "f"), DIALECT, "GZIP", 4096)
    assert [record.fields[0] for record in blocks.next_block()] == [b"%d" % i for i in range(100)]
    with pytest.raises(DataLossError, match="ends within its compressed data"):
        blocks.next_block()
    blocks.close()
