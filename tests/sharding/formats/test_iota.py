"""Lists of devices as grids."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding.formats.iota import Iota

grids = st.lists(st.integers(1, 4), min_size=1, max_size=4).flatmap(
    lambda shape: st.builds(Iota, st.just(tuple(shape)), st.permutations(range(len(shape))).map(tuple))
)


@given(grids)
def test_devices_are_the_grid_with_its_axes_in_order(iota):
    grid = np.arange(math.prod(iota.reshape_dims)).reshape(iota.reshape_dims)
    assert list(iota.devices) == grid.transpose(iota.transpose_perm).reshape(-1).tolist()


@given(grids)
def test_the_grid_that_is_found_has_the_fewest_axes(iota):
    found = Iota.of(iota.devices)
    assert found is not None
    assert found.devices == iota.devices
    assert len(found.reshape_dims) <= max(1, sum(size > 1 for size in iota.reshape_dims))
    assert found == Iota.of(found.devices)


@pytest.mark.parametrize(
    ("devices", "text"),
    [
        (range(8), "<=[8]"),
        ([0], "<=[1]"),
        ([0, 4, 1, 5, 2, 6, 3, 7], "<=[2,4]T(1,0)"),
        ([0, 2, 4, 1, 3, 5], "<=[3,2]T(1,0)"),
    ],
)
def test_a_grid_is_written_with_its_axes_only_if_they_are_moved(devices, text):
    assert str(Iota.of(list(devices))) == text


@pytest.mark.parametrize("devices", [[1, 0], [0, 2, 1], [0, 1, 3, 2], [5, 7], [1], [0, 2], [0, 1, 2, 4]])
def test_other_lists_are_no_grid(devices):
    assert Iota.of(devices) is None
