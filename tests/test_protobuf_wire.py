"""Fields of Protocol Buffers: round trips of encoding and decoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.protobuf_wire import (
    BYTES,
    GROUP,
    VARINT,
    Field,
    WireError,
    bytes_field,
    fields,
    number_field,
    packed_field,
)
from ringlet.protobuf_wire import unpacked as unpack

INT64 = st.integers(-(2**63), 2**63 - 1)
NUMBERS = st.integers(1, 2**29 - 1)


@given(NUMBERS, INT64.filter(bool), st.binary(max_size=300))
def test_numbers_and_bytes_are_read_again(number, value, content):
    found = list(fields(number_field(number, value) + bytes_field(number, content)))
    assert [item[:3] for item in found] == [(number, VARINT, value), (number, BYTES, content)]


@given(st.lists(INT64, min_size=1))
def test_packed_lists_are_read_again(values):
    (item,) = fields(packed_field(4, values))
    assert unpack(item.value) == values


def test_zeros_and_empty_lists_are_not_written():
    assert number_field(1, 0) + packed_field(1, []) == b""


def test_a_group_is_one_field_whose_contents_are_not_read():
    data = bytes.fromhex("7b 0801 7c")
    assert list(fields(data)) == [Field(15, GROUP, b"", data)]


def test_the_position_of_damage_is_named():
    with pytest.raises(WireError, match=r"^at byte 4 a number is truncated$"):
        list(fields(bytes.fromhex("0a01411080")))
