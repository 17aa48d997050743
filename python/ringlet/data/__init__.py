"""Datasets: input pipelines over arrays, and their distribution to replicas (``tf.data``, ``tf.distribute``).

Examples
--------
>>> import numpy as np
>>> from ringlet.data import Dataset
>>> [x.tolist() for x in Dataset.range(7).shuffle(7, seed=3).batch(7).map(np.sort)]
[[0, 1, 2, 3, 4, 5, 6]]
"""

from __future__ import annotations

from ringlet.data.dataset import Dataset
from ringlet.data.dataset_iterator import DatasetIterator, NumpyIterator
from ringlet.data.dataset_options import DistributeOptions, OptimizationOptions, Options, ThreadingOptions
from ringlet.data.dataset_spec import DatasetSpec, OptionalSpec
from ringlet.data.distribution.distributed_dataset import DistributedDataset
from ringlet.data.distribution.distributed_iterator import DistributedIterator
from ringlet.data.explain_dataset import explain
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ringlet.data.graph.count_arguments import AUTOTUNE
from ringlet.data.input_context import InputContext
from ringlet.data.input_options import InputOptions, InputReplicationMode
from ringlet.data.operations.assert_cardinality import assert_cardinality
from ringlet.data.operations.at import at
from ringlet.data.operations.shard import SHARD_HINT
from ringlet.data.optional import Optional
from ringlet.data.policies import AutoShardPolicy, ExternalStatePolicy
from ringlet.data.readers.csv_dataset import CsvDataset
from ringlet.data.readers.example import decode_example, parse_example, parse_single_example
from ringlet.data.readers.example_features import FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, VarLenRows
from ringlet.data.readers.example_writer import serialize_example
from ringlet.data.readers.fixed_length import FixedLengthRecordDataset
from ringlet.data.readers.make_csv_dataset import make_csv_dataset
from ringlet.data.readers.text_line import TextLineDataset
from ringlet.data.readers.tfrecord import TFRecordDataset
from ringlet.data.readers.tfrecord_writer import TFRecordWriter
from ringlet.data.tensor_spec import NoneTensorSpec, PerReplicaSpec, TensorSpec
from ringlet.module_names import list_public

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "SHARD_HINT",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "CsvDataset",
    "Dataset",
    "DatasetIterator",
    "DatasetSpec",
    "DistributeOptions",
    "DistributedDataset",
    "DistributedIterator",
    "ExternalStatePolicy",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "FixedLengthRecordDataset",
    "InputContext",
    "InputOptions",
    "InputReplicationMode",
    "NoneTensorSpec",
    "NumpyIterator",
    "OptimizationOptions",
    "Optional",
    "OptionalSpec",
    "Options",
    "PerReplicaSpec",
    "TFRecordDataset",
    "TFRecordWriter",
    "TensorSpec",
    "TextLineDataset",
    "ThreadingOptions",
    "VarLenFeature",
    "VarLenRows",
    "assert_cardinality",
    "at",
    "decode_example",
    "explain",
    "make_csv_dataset",
    "parse_example",
    "parse_single_example",
    "serialize_example",
]

__dir__ = list_public(__name__)
