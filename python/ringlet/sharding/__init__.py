"""Sharded arrays: tensors divided into tiles over logical devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.module_names import list_public, load_on_use

if TYPE_CHECKING:
    from ringlet.errors import GatherError as GatherError
    from ringlet.errors import GatherWarning as GatherWarning
    from ringlet.sharding import random as random
    from ringlet.sharding.array_namespace import namespace as namespace
    from ringlet.sharding.creation import device_put as device_put
    from ringlet.sharding.creation import shard as shard
    from ringlet.sharding.execution.determinism import deterministic as deterministic
    from ringlet.sharding.execution.gather_fallback import strict as strict
    from ringlet.sharding.explain_operations import explain as explain
    from ringlet.sharding.formats.dtensor_layouts import from_dtensor as from_dtensor
    from ringlet.sharding.formats.dtensor_layouts import to_dtensor as to_dtensor
    from ringlet.sharding.formats.jax_layouts import from_jax as from_jax
    from ringlet.sharding.formats.jax_layouts import to_jax as to_jax
    from ringlet.sharding.halo.conv import conv_general as conv_general
    from ringlet.sharding.halo.conv import conv_general_vjp as conv_general_vjp
    from ringlet.sharding.halo.correlate import correlate as correlate
    from ringlet.sharding.halo.correlate import correlate_vjp as correlate_vjp
    from ringlet.sharding.halo.dimension_numbers import ConvDimensionNumbers as ConvDimensionNumbers
    from ringlet.sharding.halo.pooling import avg_pool as avg_pool
    from ringlet.sharding.halo.pooling import avg_pool_vjp as avg_pool_vjp
    from ringlet.sharding.halo.pooling import max_pool as max_pool
    from ringlet.sharding.halo.pooling import max_pool_vjp as max_pool_vjp
    from ringlet.sharding.halo.reduce_window import reduce_window as reduce_window
    from ringlet.sharding.halo.reduce_window import reduce_window_vjp as reduce_window_vjp
    from ringlet.sharding.halo.stencil import map_halo as map_halo
    from ringlet.sharding.halo.stencil import map_halo_vjp as map_halo_vjp
    from ringlet.sharding.layout.mesh import Mesh as Mesh
    from ringlet.sharding.layout.mesh import NamedSharding as NamedSharding
    from ringlet.sharding.layout.partition_spec import PartitionSpec as PartitionSpec
    from ringlet.sharding.layout.sharding import Sharding as Sharding
    from ringlet.sharding.layout.tile_views import tile_views as tile_views
    from ringlet.sharding.memory_modes import mode as mode
    from ringlet.sharding.report import Report as Report
    from ringlet.sharding.sharded_array import ShardedArray as ShardedArray
    from ringlet.sharding.visualization import Visualization as Visualization
    from ringlet.sharding.visualization import visualize as visualize

# Public name -> module below ringlet.sharding that defines it.
_PUBLIC = {
    "ConvDimensionNumbers": "halo.dimension_numbers",
    "GatherError": ".errors",
    "GatherWarning": ".errors",
    "Mesh": "layout.mesh",
    "NamedSharding": "layout.mesh",
    "PartitionSpec": "layout.partition_spec",
    "Report": "report",
    "ShardedArray": "sharded_array",
    "Sharding": "layout.sharding",
    "Visualization": "visualization",
    "avg_pool": "halo.pooling",
    "avg_pool_vjp": "halo.pooling",
    "conv_general": "halo.conv",
    "conv_general_vjp": "halo.conv",
    "correlate": "halo.correlate",
    "correlate_vjp": "halo.correlate",
    "deterministic": "execution.determinism",
    "device_put": "creation",
    "explain": "explain_operations",
    "from_dtensor": "formats.dtensor_layouts",
    "from_jax": "formats.jax_layouts",
    "map_halo": "halo.stencil",
    "map_halo_vjp": "halo.stencil",
    "max_pool": "halo.pooling",
    "max_pool_vjp": "halo.pooling",
    "mode": "memory_modes",
    "namespace": "array_namespace",
    "random": "random",
    "reduce_window": "halo.reduce_window",
    "reduce_window_vjp": "halo.reduce_window",
    "shard": "creation",
    "strict": "execution.gather_fallback",
    "tile_views": "layout.tile_views",
    "to_dtensor": "formats.dtensor_layouts",
    "to_jax": "formats.jax_layouts",
    "visualize": "visualization",
}
__all__ = list(_PUBLIC)

# Names from JAX and PyTorch, with the equivalent in ringlet.
_RESHARD = "write x.reshard(sharding)"
__getattr__ = load_on_use(
    __name__,
    _PUBLIC,
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
