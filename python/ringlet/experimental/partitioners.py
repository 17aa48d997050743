"""What cuts variables into shards for parameter servers (``tf.distribute.experimental.partitioners``)."""

from __future__ import annotations

from ringlet.values.variables.partitioner import (
    FixedShardsPartitioner,
    MaxSizePartitioner,
    MinSizePartitioner,
    Partitioner,
)

__all__ = ["FixedShardsPartitioner", "MaxSizePartitioner", "MinSizePartitioner", "Partitioner"]
