"""Arrays of JAX on several devices become sharded arrays in the same layout, and sharded arrays become theirs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ringlet.errors import ShardingError
from ringlet.sharding import Mesh, NamedSharding, Sharding, from_jax, shard, to_jax
from tests.frameworks.libraries import library

jax = library("jax")

VALUES = np.arange(24, dtype=np.float32).reshape(4, 6)


def named(*spec):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))


@pytest.mark.parametrize("spec", [("x",), (None, "x"), ()])
def test_layouts_and_values_are_kept_both_ways(spec):
    theirs = jax.device_put(VALUES, named(*spec))
    x = from_jax(theirs)
    assert x.sharding == shard(VALUES, Mesh({"x": 2}).sharding(*spec)).sharding
    for tile, shard_of_theirs in zip(x.shards, theirs.addressable_shards, strict=True):
        np.testing.assert_array_equal(tile, shard_of_theirs.data)
    back = to_jax(x)
    assert back.sharding.is_equivalent_to(theirs.sharding, 2)
    assert back.sharding.mesh.axis_names == ("x",)
    np.testing.assert_array_equal(back, VALUES)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1


@pytest.mark.parametrize(
    "sharding", [Sharding.tiled((1, 2)), Sharding.tiled((2, 1), [1, 0]), Sharding.replicated(2), Sharding.maximal(1, 2)]
)
def test_arrays_without_a_mesh_have_their_tiles_on_the_devices(sharding):
    x = shard(VALUES, sharding)
    made = to_jax(x)
    devices = jax.devices() if sharding.kind != "maximal" else jax.devices()[1:2]
    tiles = {each.device: each.data for each in made.addressable_shards}
    for device, tile in zip(devices, x.shards, strict=True):
        np.testing.assert_array_equal(tiles[device], tile)


def test_sums_are_combined_and_one_device_shares_memory():
    x = shard(VALUES, Mesh({"x": 2}).sharding("x"))
    np.testing.assert_array_equal(to_jax(x.sum(axis=0)), VALUES.sum(axis=0))
    one = jax.device_put(VALUES, jax.devices()[1])
    assert from_jax(one).shards[0].ctypes.data == one.unsafe_buffer_pointer()


def test_specifications_of_jax_are_accepted():
    mesh = Mesh({"x": 2, "y": 2})
    for spec in (("x", None), (("x", "y"),), (None, "y")):
        theirs = jax.sharding.PartitionSpec(*spec)
        assert NamedSharding(mesh, theirs) == mesh.sharding(*spec)
    theirs = jax.sharding.PartitionSpec("x", unreduced={"y"})
    assert NamedSharding(mesh, theirs) == mesh.sharding("x", unreduced="y")
    with pytest.raises(ShardingError, match="has reduced axes, which only JAX supports: omit reduced="):
        NamedSharding(mesh, jax.sharding.PartitionSpec("x", reduced={"y"}))


def test_missing_devices_and_other_shardings_are_refused():
    with pytest.raises(ShardingError, match="xla_force_host_platform_device_count=4"):
        to_jax(shard(VALUES, Sharding.tiled((4, 1))))
    other = SimpleNamespace(device_set={0, 1})
    with pytest.raises(ShardingError, match=r"expected a NamedSharding\. Move the array first with jax\.device_put"):
        from_jax(SimpleNamespace(sharding=other, is_fully_addressable=True, addressable_shards=()))
    with pytest.raises(ShardingError, match="shards in other processes"):
        from_jax(SimpleNamespace(sharding=other, is_fully_addressable=False, addressable_shards=()))
