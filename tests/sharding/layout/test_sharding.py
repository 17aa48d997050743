"""Where the parts of a tensor are."""

from __future__ import annotations

import pickle

import pytest

from ringlet.errors import PartitionError, ShardingError
from ringlet.sharding import Sharding


def test_the_kinds_have_xla_s_names_and_texts():
    found = [(s.type, str(s)) for s in (Sharding.tiled([2, 1]), Sharding.maximal(3, 8), Sharding.replicated(8))]
    assert found == [
        ("OTHER", "{devices=[2,1]<=[2]}"),
        ("MAXIMAL", "{maximal device=3}"),
        ("REPLICATED", "{replicated}"),
    ]


def test_tiles_are_numbered_row_major():
    assert Sharding.tiled([2, 3]).tile_assignment.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_each_device_of_a_tiling_has_a_slice_of_its_own():
    slices = Sharding.tiled([2, 2]).slices((4, 6))
    assert [[(cut.start, cut.stop) for cut in cuts] for cuts in slices] == [
        [(0, 2), (0, 3)],
        [(0, 2), (3, 6)],
        [(2, 4), (0, 3)],
        [(2, 4), (3, 6)],
    ]


def test_sizes_that_are_not_known_are_whole():
    assert Sharding.tiled([2, 1]).slices((None, 3)) == [(slice(None), slice(0, 3))] * 2


def test_the_whole_is_on_one_device_or_on_all():
    assert Sharding.maximal(3, 8).slices((4,)) == [(slice(0, 4),)]
    assert Sharding.replicated(8).slices((4,)) == [(slice(0, 4),)] * 8


def test_a_tiling_is_for_one_number_of_dimensions():
    with pytest.raises(PartitionError, match=r"for tensors of 2 dimensions, but shape \(4,\) has 1"):
        Sharding.tiled([2, 2]).slices((4,))


@pytest.mark.parametrize(
    ("size", "tiles", "bounds"),
    [
        (6, 4, [(0, 2), (2, 4), (4, 6), (6, 6)]),
        (9, 4, [(0, 3), (3, 6), (6, 9), (9, 9)]),
        (2, 4, [(0, 1), (1, 2), (2, 2), (2, 2)]),
        (0, 2, [(0, 0), (0, 0)]),
    ],
)
def test_the_last_tiles_of_a_dimension_are_short_or_empty(size, tiles, bounds):
    assert [(cut.start, cut.stop) for (cut,) in Sharding.tiled([tiles]).slices((size,))] == bounds


def test_devices_of_one_group_have_equal_slices():
    slices = Sharding.tiled([2, 2], last_tile_dims=["replicated"]).slices((4,))
    assert slices == [(slice(0, 2),)] * 2 + [(slice(2, 4),)] * 2


@pytest.mark.parametrize("parts", [[0, 2], [-1], [2.0], ["2"], [None]])
def test_a_dimension_is_cut_into_one_tile_or_more(parts):
    with pytest.raises(PartitionError, match="expected 1 or more along each dimension"):
        Sharding.tiled(parts)


def test_equal_shardings_are_equal():
    assert Sharding.tiled([2, 2]) == Sharding.tiled((2, 2))
    assert Sharding.maximal(1, 2) != Sharding.maximal(0, 2)
    assert len({Sharding.replicated(2), Sharding.replicated(2)}) == 1


def test_how_devices_are_written_does_not_count():
    listed = Sharding.parse("{devices=[2,2]0,1,2,3}")
    assert str(listed) != str(Sharding.tiled([2, 2]))
    assert listed == Sharding.tiled([2, 2], range(4))
    assert hash(listed) == hash(Sharding.tiled([2, 2]))


def test_how_many_devices_there_are_does_not_count():
    for sharding in (Sharding.replicated(4), Sharding.unreduced(4), Sharding.manual(4), Sharding.maximal(1, 4)):
        assert Sharding.parse(str(sharding)) == Sharding.from_serialized(sharding.serialized()) == sharding
        assert len({Sharding.parse(str(sharding)), sharding}) == 1


@pytest.mark.parametrize("num_devices", [0, -1, 2.5, "4"])
def test_there_is_a_device_or_more(num_devices):
    with pytest.raises(ShardingError, match=f"logical devices must be 1 or more, or None, got {num_devices!r}"):
        Sharding.replicated(num_devices)


def test_a_tiling_over_one_device_is_that_device():
    assert str(Sharding.tiled((1, 1))) == str(Sharding.tiled((1,), [0], last_tile_dims=["manual"])) == "{replicated}"
    assert Sharding.tiled((1, 1)).num_devices == 1
    assert Sharding.from_serialized(Sharding.tiled((1, 1)).serialized()) == Sharding.tiled((1, 1))
    assert str(Sharding.tiled((1, 1), [3])) == "{maximal device=3}"


def test_devices_without_a_grid_are_listed():
    assert str(Sharding.tiled([2, 2], [3, 2, 1, 0])) == "{devices=[2,2]3,2,1,0}"


def test_groups_without_tiles_are_a_kind_of_their_own():
    found = [str(Sharding.tiled([1, 4], last_tile_dims=[group])) for group in ("replicated", "unreduced", "manual")]
    assert found == ["{replicated}", "{unreduced}", "{manual}"]


@pytest.mark.parametrize("device", [-1, 4, 1.5, None, True])
def test_one_device_is_one_that_there_is(device):
    with pytest.raises(ShardingError, match=f"device {device!r} does not exist: expected a number from 0 to 3"):
        Sharding.maximal(device, 4)


def test_tuples_are_not_nested():
    pair = Sharding.of_tuple([Sharding.replicated(), Sharding.unknown()])
    assert str(pair) == "{{replicated}, {unknown}}"
    with pytest.raises(ShardingError, match="list the shardings of all tensors in one tuple"):
        Sharding.of_tuple([pair])
    with pytest.raises(TypeError, match="expected shardings, got the element 3 of type int"):
        Sharding.of_tuple([3])


def test_a_sharding_survives_pickle():
    sharding = Sharding.tiled([2, 1, 2], [0, 2, 1, 3], last_tile_dims=["unreduced"])
    assert pickle.loads(pickle.dumps(sharding)) == sharding
    assert repr(sharding) == f"Sharding({sharding})"


def test_a_tensor_without_dimensions_has_one_tile():
    assert Sharding.tiled([]).slices(()) == [()]
    assert Sharding.replicated(3).tile_assignment.size == 0


@pytest.mark.parametrize(
    "arguments", [{"partition_dimensions": 4}, {"devices": 3}, {"devices": "01"}, {"last_tile_dims": "manual"}]
)
def test_tiles_devices_and_groups_are_listed(arguments):
    with pytest.raises(TypeError, match="expected a list of"):
        Sharding.tiled(**{"partition_dimensions": (2,), **arguments})


def test_there_are_no_more_tiles_than_devices_of_any_machine():
    with pytest.raises(ShardingError, match="at most 1048576"):
        Sharding.tiled((2**30, 2**30))
