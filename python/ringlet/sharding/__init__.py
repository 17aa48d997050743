"""Tensors cut into tiles."""

from __future__ import annotations

from ringlet.sharding.sharded_array import ShardedArray
from ringlet.sharding.sharding import Sharding
from ringlet.sharding.tile_views import tile_views

__all__ = ["ShardedArray", "Sharding", "tile_views"]
