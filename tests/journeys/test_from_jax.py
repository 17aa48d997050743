"""Names and objects from JAX and torch on sharded arrays: each is accepted, or the error gives the line to write."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ringlet.sharding
from ringlet.errors import ShardingError
from ringlet.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, shard
from ringlet.testing import run_on_ranks

MESH = Mesh({"x": 4, "y": 2})
X = shard(np.ones((8, 4)), MESH.sharding("x"))


@pytest.mark.parametrize(
    ("owner", "name", "remedy"),
    [
        (ringlet.sharding, "P", "write ringlet.sharding.PartitionSpec"),
        (ringlet.sharding, "device_get", "write x.numpy()"),
        (ringlet.sharding, "distribute_tensor", "write shard(array, mesh.sharding('x'))"),
        (ringlet.sharding, "gather", "write x.numpy()"),
        (ringlet.sharding, "make_mesh", "write Mesh({'x': 4, 'y': 2})"),
        (ringlet.sharding, "reshard", "write x.reshard(sharding)"),
        (ringlet.sharding, "shard_map", "apply NumPy's functions to sharded arrays, or write map_halo"),
        (ringlet.sharding, "visualize_array_sharding", "write ringlet.sharding.visualize"),
        (ringlet.sharding, "with_sharding_constraint", "write x.reshard(sharding)"),
        (X, "addressable_shards", "Use array.shards"),
        (X, "at", "Write array[index] = value"),
        (X, "block_until_ready", "Omit it"),
        (X, "compute", "Omit it"),
        (X, "gather", "Write array.numpy()"),
        (X, "rechunk", "Write array.reshard(sharding)"),
        (X, "tiles", "Use array.shards"),
        (X, "full_tensor", "Write array.numpy()"),
        (X, "redistribute", "Write array.reshard(sharding)"),
        (X, "to_numpy", "Write array.numpy()"),
        (X.sharding, "spec", "write array.spec"),
        (X.sharding, "mesh", "write array.mesh"),
    ],
)
def test_an_absent_name_of_jax_or_torch_leads_to_the_present_one(owner, name, remedy):
    with pytest.raises(AttributeError, match=f"no attribute '{name}': .*{re.escape(remedy)}"):
        getattr(owner, name)


@pytest.mark.parametrize("name", ["PartitionSpec", "P"])  # of the class, in older and newer versions
def test_a_specification_of_jax_is_accepted(name):
    spec = type(name, (tuple,), {"unreduced": frozenset("y")})(("x", None))
    assert NamedSharding(MESH, spec) == NamedSharding(MESH, PartitionSpec("x", None, unreduced="y"))
    with pytest.raises(ValueError, match=re.escape("is a whole PartitionSpec")):
        MESH.sharding(spec)


def test_a_specification_alone_means_the_mesh_of_the_array():
    moved = X.reshard(PartitionSpec(None, "x"))
    assert moved.sharding == MESH.sharding(None, "x").for_ndim(2)
    with pytest.raises(TypeError, match="expected a Sharding"):  # an array without a mesh
        shard(np.ones(4), Sharding.tiled((2,))).reshard(PartitionSpec("x"))


def test_an_array_says_its_mesh_and_specification():
    assert (X.mesh, X.spec) == (MESH, PartitionSpec("x", None))
    assert (X.T @ X).spec == PartitionSpec(None, None, unreduced="x")
    unnamed = shard(np.ones(4), Sharding.tiled((2,)))
    assert (unnamed.mesh, unnamed.spec) == (None, None)


def test_objects_of_other_types_are_refused_with_the_call_to_write():
    with pytest.raises(TypeError, match=r"from_jax requires a JAX array, got .* ndarray: .*shard\(array, sharding\)"):
        ringlet.sharding.from_jax(np.ones(2))
    with pytest.raises(TypeError, match=r"to_jax requires a ShardedArray, got .* list: pass shard\(array, sharding\)"):
        ringlet.sharding.to_jax([1, 2])


def test_to_jax_requires_an_array_in_one_process():
    def step(member):
        x = shard(np.ones(4), Mesh({"x": 2}, member=member).sharding("x"))
        expected = (
            "to_jax was given an array on 2 devices of 2 processes: expected devices of this process. Pass "
            "shard(np.asarray(x), x.sharding)"
        )
        with pytest.raises(ShardingError, match=f"^{re.escape(expected)}$"):
            ringlet.sharding.to_jax(x)
        return shard(np.asarray(x), x.sharding).tolist()

    assert run_on_ranks(2, step) == [[1.0] * 4] * 2
