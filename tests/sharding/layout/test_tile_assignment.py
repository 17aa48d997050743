"""Tables of tiles and devices."""

from __future__ import annotations

import pytest

from ringlet.errors import ShardingError
from ringlet.sharding.layout.tile_assignment import checked_devices, listed_items, normal_form

EIGHT = tuple(range(8))


def test_a_table_without_groups_is_as_it_was_given():
    assert normal_form((2, 1, 4), EIGHT[::-1], ()) == ((2, 1, 4), EIGHT[::-1], ())


def test_groups_of_one_device_are_left_out():
    assert normal_form((8, 1), EIGHT, ("manual",)) == ((8,), EIGHT, ())


def test_groups_come_in_one_order():
    found = normal_form((2, 2, 2), EIGHT, ("replicated", "unreduced"))
    assert found == ((2, 2, 2), (0, 2, 1, 3, 4, 6, 5, 7), ("unreduced", "replicated"))


def test_groups_of_one_kind_are_one():
    assert normal_form((2, 2, 2), EIGHT, ("manual", "manual")) == ((2, 4), EIGHT, ("manual",))


def test_devices_with_equal_values_are_sorted():
    assert normal_form((2, 2), (3, 2, 1, 0), ("replicated",)).devices == (2, 3, 0, 1)
    assert normal_form((2, 2), (3, 2, 1, 0), ("unreduced",)).devices == (3, 2, 1, 0)


@pytest.mark.parametrize("groups", [("maximal",), ("manual",) * 3])
def test_a_group_is_of_a_known_kind_and_has_a_dimension(groups):
    with pytest.raises(ShardingError, match=r"last_tile_dims are .* for a tile assignment of \[2, 2\]"):
        normal_form((2, 2), (0, 1, 2, 3), groups)


@pytest.mark.parametrize(
    ("devices", "reason"),
    [
        ([0, 1, 2], "there are 3 devices for 4 tiles"),
        ([0, 1, 2, 3, 4], "there are 5 devices for 4 tiles"),
        ([0, 1, 1, 3], "device 1 is listed 2 times"),
        ([0, 1, 2, -1], "expected device numbers of 0 or more"),
        ([0, 1, 2, 3.0], "expected device numbers of 0 or more"),
    ],
)
def test_each_tile_has_a_device_of_its_own(devices, reason):
    with pytest.raises(ShardingError, match=reason):
        checked_devices(devices, (2, 2))


@pytest.mark.parametrize("given", [3, "01", None])
def test_what_is_no_list_is_shown(given):
    with pytest.raises(TypeError, match=f"expected a list of devices, got {given!r}"):
        listed_items(given, "devices")
