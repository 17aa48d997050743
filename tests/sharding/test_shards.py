"""What each device has, for those who look at it or write to it."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Sharding, mode, shard
from ringlet.testing import run_on_ranks
from tests.sharding.sweep import MESHES, placements

VALUES = np.arange(35).reshape(7, 5)


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("mesh", MESHES)
def test_a_shard_is_the_box_of_its_device(mesh, memory):
    for layout in placements(mesh, 2):
        if layout.only is not None:
            continue
        with mode(memory):
            x = shard(VALUES, Sharding.replicated(layout.num_devices))
            from ringlet.sharding.resharding.reshard import redistribute

            shards = redistribute(x, layout)._derive(lambda space: space, layout, is_view=False).shards
        for tile, box in zip(shards, layout.boxes(VALUES.shape), strict=True):
            np.testing.assert_array_equal(tile, VALUES[box])


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_the_device_that_has_it_all_has_the_only_shard(memory):
    with mode(memory):
        (tile,) = shard(VALUES, Sharding.maximal(1, 3)).shards
    np.testing.assert_array_equal(tile, VALUES)


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_shards_are_written_to_where_no_other_device_has_the_same(memory):
    with mode(memory):
        x = shard(VALUES.copy(), Sharding.tiled((2, 1)))
        both = shard(VALUES.copy(), Sharding.tiled((2, 1, 2), last_tile_dims=["replicated"]))
        everywhere = shard(VALUES.copy(), Sharding.replicated(2))
        x.shards[1][...] = 0
        assert x[4:].tolist() == [[0] * 5] * 3
        for tile in [*both.shards, *everywhere.shards, *x.T.shards]:
            with pytest.raises(ValueError, match="read-only"):
                tile[...] = 1


def test_a_process_has_the_shards_of_its_devices():
    from ringlet.sharding import Mesh

    def shards(member):
        mesh = Mesh({"x": 4}, member=member, owner=(0, 1, 0, 1))
        return [tile.tolist() for tile in shard(np.arange(4), mesh.sharding("x")).shards]

    assert run_on_ranks(2, shards) == [[[0], [2]], [[1], [3]]]
