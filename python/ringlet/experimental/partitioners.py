"""Partitioners of variables for parameter servers (``tf.distribute.experimental.partitioners``)."""

from __future__ import annotations

from ringlet.module_names import list_public
from ringlet.values.variables.partitioner import (
    FixedShardsPartitioner,
    MaxSizePartitioner,
    MinSizePartitioner,
    Partitioner,
)

__all__ = ["FixedShardsPartitioner", "MaxSizePartitioner", "MinSizePartitioner", "Partitioner"]

__dir__ = list_public(__name__)
