"""Datasets: input pipelines over arrays, and their distribution to replicas (``tf.data``, ``tf.distribute``).

Examples
--------
>>> import numpy as np
>>> from ringlet.data import Dataset
>>> [x.tolist() for x in Dataset.range(7).shuffle(7, seed=3).batch(7).map(np.sort)]
[[0, 1, 2, 3, 4, 5, 6]]
"""

from __future__ import annotations

from ringlet.data.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ringlet.data.dataset import Dataset
from ringlet.data.distributed import DistributedDataset, DistributedIterator
from ringlet.data.input_context import InputContext
from ringlet.data.input_options import InputOptions, InputReplicationMode
from ringlet.data.iterator import DatasetIterator
from ringlet.data.operations.counts import AUTOTUNE
from ringlet.data.optional import Optional
from ringlet.data.spec import PerReplicaSpec, TensorSpec

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "DatasetIterator",
    "DistributedDataset",
    "DistributedIterator",
    "InputContext",
    "InputOptions",
    "InputReplicationMode",
    "Optional",
    "PerReplicaSpec",
    "TensorSpec",
]
