"""Bytes of shardings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.errors import PartitionError, ShardingError
from ringlet.sharding import Sharding
from tests.sharding.shardings import shardings

# Written by jaxlib 0.10.2: HloSharding.from_string(text).to_proto().SerializeToString()
WRITTEN = {
    "{replicated}": "",
    "{manual}": "0804",
    "{unreduced}": "0806",
    "{maximal device=0}": "0801220100",
    "{{replicated}, {manual}}": "08022a002a020804",
    "{replicated shard_as 0}": "5801",
    "{unknown shard_like 3}": "0805580160036801",
    "{devices=[2,2]0,1,2,3}": "08031a020202220400010203",
    "{devices=[2,1]<=[2]}": "08031a0202014a0102520100",
    "{devices=[2,2]2,3,0,1 last_tile_dim_replicate}": "08031a0202022204020300013001",
    "{devices=[2,4]3,1,0,2,4,5,6,7 last_tile_dims={manual}}": "08031a02020422080301000204050607420104",
    "{devices=[2,2,2,2]<=[4,2,2]T(0,2,1) last_tile_dims={manual, unreduced}}": (
        "08031a0402020202420204064a030402025203000201"
    ),
}


@pytest.mark.parametrize(("text", "data"), WRITTEN.items())
def test_bytes_are_those_that_xla_writes(text, data):
    assert Sharding.parse(text).serialized().hex() == data
    assert str(Sharding.from_serialized(bytes.fromhex(data))) == text


@given(shardings())
def test_what_is_written_is_read_back(sharding):
    found = Sharding.from_serialized(sharding.serialized())
    assert str(found) == str(sharding)
    assert found.serialized() == sharding.serialized()


@pytest.mark.parametrize("more", ["a80601", "b90600010203040506ff", "bd0601020304", "b3060801b406"])
def test_fields_that_are_not_known_are_kept(more):
    data = bytes.fromhex("08031a0202014a0102520100" + more)
    found = Sharding.from_serialized(data)
    assert found == Sharding.tiled((2, 1))
    assert found.serialized() == data


def test_fields_come_in_the_order_of_their_numbers():
    places, metadata, more = "08031a020202220400010203", "3a03120161", "420104580160056801"
    found = Sharding.from_serialized(bytes.fromhex(more + metadata + places))
    assert found.serialized().hex() == places + metadata + more
    assert str(found) == "{devices=[2,2]0,1,2,3 last_tile_dims={manual} shard_like 5}"


def test_fields_of_an_element_stay_in_it():
    data = bytes.fromhex("08022a063a04120261622a020804")
    assert Sharding.from_serialized(data).serialized() == data


def test_numbers_may_come_one_by_one():
    assert Sharding.from_serialized(bytes.fromhex("18021802" + "2000200120022003" + "0803")) == Sharding.tiled((2, 2))


@given(st.binary(max_size=40) | st.builds(lambda s, cut: s.serialized()[:cut], shardings(), st.integers(0, 40)))
def test_other_bytes_are_refused(data):
    try:
        found = Sharding.from_serialized(data)
    except (ShardingError, PartitionError):
        return
    assert str(Sharding.from_serialized(found.serialized())) == str(found)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("08", "at byte 1 a number is truncated"),
        ("1a0502", "at byte 2 a field is truncated: 1 of 5 bytes are present"),
        ("0807", "has type 7: expected 0 to 6 \\(REPLICATED"),
        ("0801", r"is MAXIMAL but has devices \[\]: expected one device"),
        ("080122 02 0001", r"is MAXIMAL but has devices \[0, 1\]"),
        ("0801220affffffffffffffffff01", "device -1 does not exist"),
        ("08031a0202024a0105520100", r"a grid of \[5\] devices for \[2, 2\] tiles"),
        ("08031a0202024a020202520100", r"has the axis order \[0\] for a grid of \[2, 2\] devices"),
        ("08031a0202022203000102", "there are 3 devices for 4 tiles"),
        ("08031a020202220400010203420101", "last_tile_dims are"),
        ("08031a020202220400010203420109", r"last_tile_dims are \[9\]"),
        ("08031a05ffffffff074a05ffffffff07520100", "at most 1048576"),
        ("58016802", "has shard group 0 of type 2: expected a non-negative group and type 0 or 1"),
    ],
)
def test_messages_without_sense_are_refused(data, reason):
    with pytest.raises(ShardingError, match=reason):
        Sharding.from_serialized(bytes.fromhex(data))


@pytest.mark.parametrize("data", ["080122", 3, None])
def test_what_is_no_bytes_is_refused(data):
    with pytest.raises(TypeError, match="an OpSharding message must be bytes, got "):
        Sharding.from_serialized(data)
