from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import TextLineDataset
from ringlet.errors import InvalidArgumentError
from tests.data.readers.files import assert_restores, outcome, put


@given(pieces=st.lists(st.sampled_from([b"a", b"bcd", b"\n", b"\r", b"\r\n", b"\0"])))
def test_lines_end_at_line_feeds_and_have_no_carriage_return(pieces, tmp_path_factory):
    text = b"".join(pieces)
    expected = text.replace(b"\r", b"").split(b"\n")
    name = put(tmp_path_factory.mktemp("text") / "file", text)
    assert list(TextLineDataset(name)) == (expected if expected[-1] else expected[:-1])


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_a_line_that_is_longer_than_the_buffer_is_given_whole(tmp_path, compression):
    lines = [b"x" * size for size in (0, 10_000, 3, 4096, 4095, 100_000, 1)]
    name = put(tmp_path / "file", b"\n".join(lines), compression)
    assert list(TextLineDataset(name, compression, buffer_size=0)) == lines
    assert_restores(lambda: TextLineDataset(name, compression, buffer_size=0), range(8))


def test_lines_in_front_of_damage_come_before_it_and_the_next_file_behind(tmp_path):
    packed = gzip.compress(b"".join(b"%d\n" % i for i in range(100_000)))
    damaged = put(tmp_path / "damaged", packed[:100_000] + b"\xff" * 40 + packed[100_040:])
    found = outcome(TextLineDataset([damaged, put(tmp_path / "good", b"end\n", "GZIP")], "GZIP"))
    assert found[-2:] == ["DataLossError", b"end"]
    assert found[: len(found) - 2] == [b"%d" % i for i in range(len(found) - 2)]
    assert len(found) > 20_000


def test_a_compression_that_is_not_known_is_refused_at_once():
    with pytest.raises(InvalidArgumentError, match="Unsupported compression_type: 'LZ4'"):
        TextLineDataset("x", "LZ4")
