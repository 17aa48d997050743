"""Tiles of an array as `shards` shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["shards_of"]


def shards_of(x: ShardedArray) -> list[NDArray[Any]]:
    """Return the tiles of the devices of this process that have one; partial values are combined first.

    Read-only where several devices have the same part, and where `x` is.
    """
    from ringlet.sharding.resharding.reshard import materialized

    x = materialized(x)
    boxes = x._layout.boxes(x.shape)
    keys = [tuple((s.start, s.stop) for s in box) for box in boxes]
    shards = []
    for device in x._layout.holders:
        if x._group.has(device):
            tile = x._tile(device).view()
            if x._is_view or (keys.count(keys[device]) > 1 and x._layout.only is None and tile.size):
                tile.flags.writeable = False
            shards.append(tile)
    return shards
