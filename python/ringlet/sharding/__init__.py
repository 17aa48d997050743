"""Tensors cut into tiles."""

from __future__ import annotations

from ringlet.sharding.tile_views import tile_views

__all__ = ["tile_views"]
