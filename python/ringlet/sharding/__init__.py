"""Sharded arrays: tensors divided into tiles over logical devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.collectives.adapters.array_adapters import register_kind
from ringlet.errors import GatherError, GatherWarning
from ringlet.module_names import list_public, load_on_use
from ringlet.sharding.array_namespace import namespace
from ringlet.sharding.creation import device_put, shard
from ringlet.sharding.execution.determinism import deterministic
from ringlet.sharding.execution.gather_fallback import strict
from ringlet.sharding.explain import explain
from ringlet.sharding.halo.conv import conv_general, conv_general_vjp
from ringlet.sharding.halo.correlate import correlate, correlate_vjp
from ringlet.sharding.halo.dimension_numbers import ConvDimensionNumbers
from ringlet.sharding.halo.pooling import avg_pool, avg_pool_vjp, max_pool, max_pool_vjp
from ringlet.sharding.halo.reduce_window import reduce_window, reduce_window_vjp
from ringlet.sharding.halo.stencil import map_halo, map_halo_vjp
from ringlet.sharding.layout.mesh import Mesh, NamedSharding
from ringlet.sharding.layout.partition_spec import PartitionSpec
from ringlet.sharding.layout.sharding import Sharding
from ringlet.sharding.layout.tile_views import tile_views
from ringlet.sharding.memory_modes import mode
from ringlet.sharding.report import Report
from ringlet.sharding.sharded_adapter import ShardedKind
from ringlet.sharding.sharded_array import ShardedArray
from ringlet.sharding.visualize import Visualization, visualize

if TYPE_CHECKING:
    from ringlet.sharding import random
    from ringlet.sharding.formats.dtensor_layouts import from_dtensor, to_dtensor
    from ringlet.sharding.formats.jax_layouts import from_jax, to_jax

__all__ = [
    "ConvDimensionNumbers",
    "GatherError",
    "GatherWarning",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "Report",
    "ShardedArray",
    "Sharding",
    "Visualization",
    "avg_pool",
    "avg_pool_vjp",
    "conv_general",
    "conv_general_vjp",
    "correlate",
    "correlate_vjp",
    "deterministic",
    "device_put",
    "explain",
    "from_dtensor",
    "from_jax",
    "map_halo",
    "map_halo_vjp",
    "max_pool",
    "max_pool_vjp",
    "mode",
    "namespace",
    "random",
    "reduce_window",
    "reduce_window_vjp",
    "shard",
    "strict",
    "tile_views",
    "to_dtensor",
    "to_jax",
    "visualize",
]

# Loaded on first use, because most programs need neither numpy.random nor JAX nor PyTorch.
# Then names of JAX and torch, and what to write instead.
_RESHARD = "write x.reshard(sharding)"
__getattr__ = load_on_use(
    __name__,
    {"random": "random"}
    | dict.fromkeys(("from_dtensor", "to_dtensor"), "formats.dtensor_layouts")
    | dict.fromkeys(("from_jax", "to_jax"), "formats.jax_layouts"),
    {
        "P": f"write {__name__}.PartitionSpec",
        **dict.fromkeys(("device_get", "gather"), "write x.numpy()"),
        "distribute_tensor": "write shard(array, mesh.sharding('x'))",
        "make_mesh": "write Mesh({'x': 4, 'y': 2})",
        "reshard": _RESHARD,
        "shard_map": "apply NumPy's functions to sharded arrays, or write map_halo for a function of tiles",
        "visualize_array_sharding": f"write {__name__}.visualize",
        "with_sharding_constraint": _RESHARD,
    },
)
__dir__ = list_public(__name__)

# Collectives, strategies, variables and checkpoints accept and return sharded arrays.
register_kind(ShardedArray, ShardedKind())
