"""Where the parts of a tensor are."""

from __future__ import annotations

import pytest

from ringlet.errors import PartitionError
from ringlet.sharding import Sharding


def test_the_kinds_have_xla_s_names_and_texts():
    found = [(s.type, str(s)) for s in (Sharding.tiled([2, 1]), Sharding.maximal(3, 8), Sharding.replicated(8))]
    assert found == [("OTHER", "{devices=[2,1]0,1}"), ("MAXIMAL", "{maximal device=3}"), ("REPLICATED", "{replicated}")]


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
    with pytest.raises(PartitionError, match=r"for tensors of 2 dimensions, and shape \(4,\) has 1"):
        Sharding.tiled([2, 2]).slices((4,))


def test_equal_tiles_need_a_multiple_of_their_number():
    with pytest.raises(PartitionError, match=r"cuts dimension 1 of shape \(4, 5\) into 2 equal tiles.* to 6 first"):
        Sharding.tiled([2, 2]).check_shape((4, 5))
    Sharding.replicated(2).check_shape((5,))


@pytest.mark.parametrize("parts", [[0, 2], [-1], [2.0], ["2"], [None]])
def test_a_dimension_is_cut_into_one_tile_or_more(parts):
    with pytest.raises(PartitionError, match="1 tile or more along each dimension"):
        Sharding.tiled(parts)


def test_equal_shardings_are_equal():
    assert Sharding.tiled([2, 2]) == Sharding.tiled((2, 2))
    assert Sharding.maximal(1, 2) != Sharding.maximal(0, 2)
    assert len({Sharding.replicated(2), Sharding.replicated(2)}) == 1
