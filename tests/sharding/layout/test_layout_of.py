"""From shardings to layouts and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from ringlet.errors import PartitionError, ShardingError
from ringlet.sharding import Mesh, Sharding
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.sharding.layout.layout_of import group_of, layout_of, sharding_of
from tests.sharding.shardings import tilings


@given(tilings(("replicated", "unreduced")))
def test_a_layout_says_what_its_sharding_says(sharding):
    ndim = 2 if sharding.ndim is None else sharding.ndim
    assert sharding_of(layout_of(sharding, ndim)) == sharding


@given(tilings(("replicated",)))
def test_a_layout_cuts_as_its_sharding(sharding):
    if sharding.kind == "tiled":
        shape = tuple(range(5, 5 + sharding.ndim))
        boxes = layout_of(sharding, sharding.ndim).boxes(shape)
        assert dict(zip(sharding.tile_assignment_devices, sharding.slices(shape), strict=True)) == dict(
            enumerate(boxes)
        )


def test_terms_of_a_sum_are_parts():
    layout = layout_of(Sharding.tiled((2, 2), [0, 2, 1, 3], last_tile_dims=["unreduced"]), 1)
    assert layout == Layout(4, (Cut(2, (0, 1, 0, 1)),), Cut(2, (0, 0, 1, 1)))
    assert layout_of(Sharding.unreduced(2), 1) == Layout(2, (WHOLE,), Cut(2, (0, 1)))


def test_one_device_may_have_all():
    assert layout_of(Sharding.maximal(1, 2), 3) == Layout(2, (WHOLE,) * 3, only=1)


def test_a_tensor_without_dimensions_has_a_layout():
    assert layout_of(Sharding.tiled(()), 0) == Layout(1, ())


def test_names_of_axes_will_do():
    mesh = Mesh({"x": 2, "y": 2})
    assert layout_of(mesh.sharding("y"), 2) == layout_of(mesh.sharding("y", None).for_ndim(2), 2)
    assert group_of(mesh.sharding("y")) is mesh.group
    assert group_of(Sharding.tiled((2, 2))) is DeviceGroup.of(4)


def test_the_number_of_devices_is_that_which_is_known():
    assert layout_of(Sharding.replicated(), 1, 4).num_devices == 4
    assert layout_of(Sharding.maximal(1), 1, 4) == layout_of(Sharding.maximal(1, 4), 1)


@pytest.mark.parametrize(
    ("sharding", "devices", "reason"),
    [
        (Sharding.replicated(), None, "does not record the number of devices"),
        (Sharding.replicated(2), 4, "is for 2 devices, but there are 4"),
        (Sharding.tiled((2, 1)), 4, "is for 2 devices, but there are 4"),
        (Sharding.maximal(5), 4, "uses device 5, but there are 4 devices, 0 to 3"),
        (Sharding.tiled((2, 1), [5, 7]), 4, "uses device 7"),
        (Sharding.tiled((2, 1), [5, 7]), 8, "has tiles for 2 of 8 devices"),
        (Sharding.manual(4), 4, "does not define which part of an array each device holds"),
        (Sharding.unknown(), None, "does not define which part of an array each device holds"),
        (Sharding.tiled((2, 1, 2), last_tile_dims=["manual"]), 4, "does not define which part"),
        (Sharding.of_tuple([]), 4, "pass one of its elements"),
    ],
)
def test_a_sharding_says_which_devices_have_what(sharding, devices, reason):
    with pytest.raises(ShardingError, match=reason):
        layout_of(sharding, 2, devices)


def test_a_sharding_is_for_one_number_of_dimensions():
    with pytest.raises(PartitionError, match="for arrays of 2 dimensions, but this array has 3"):
        layout_of(Sharding.tiled((2, 2)), 3)


@pytest.mark.parametrize("given", [None, "{replicated}", (2, 1), np.arange(4)])
def test_what_is_no_sharding_is_refused(given):
    with pytest.raises(TypeError, match="expected a Sharding, such as"):
        layout_of(given, 2)


@pytest.mark.parametrize("tile", [(0, 0, 1), (0, 1, 0)])
def test_no_sharding_says_that_some_tiles_have_more_copies(tile):
    with pytest.raises(ShardingError, match="different numbers of copies"):
        sharding_of(Layout(3, (Cut(2, tile),)))


def test_shardings_that_are_equal_may_be_for_other_numbers_of_devices():
    assert layout_of(Sharding.replicated(2), 1) == Layout.replicated(2, 1)
    assert layout_of(Sharding.replicated(3), 1) == Layout.replicated(3, 1)
