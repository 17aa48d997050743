"""Datasets: input pipelines over arrays, and their distribution to replicas (``tf.data``, ``tf.distribute``).

Examples
--------
>>> import numpy as np
>>> from ringlet.data import Dataset
>>> [x.tolist() for x in Dataset.range(7).shuffle(7, seed=3).batch(7).map(np.sort)]
[[0, 1, 2, 3, 4, 5, 6]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.module_names import list_public, load_on_use

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset as Dataset
    from ringlet.data.dataset_iterator import DatasetIterator as DatasetIterator
    from ringlet.data.dataset_iterator import NumpyIterator as NumpyIterator
    from ringlet.data.dataset_options import DistributeOptions as DistributeOptions
    from ringlet.data.dataset_options import OptimizationOptions as OptimizationOptions
    from ringlet.data.dataset_options import Options as Options
    from ringlet.data.dataset_options import ThreadingOptions as ThreadingOptions
    from ringlet.data.dataset_spec import DatasetSpec as DatasetSpec
    from ringlet.data.dataset_spec import OptionalSpec as OptionalSpec
    from ringlet.data.distribution.distributed_dataset import DistributedDataset as DistributedDataset
    from ringlet.data.distribution.distributed_iterator import DistributedIterator as DistributedIterator
    from ringlet.data.explain_dataset import explain as explain
    from ringlet.data.graph.cardinality import INFINITE_CARDINALITY as INFINITE_CARDINALITY
    from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY
    from ringlet.data.graph.count_arguments import AUTOTUNE as AUTOTUNE
    from ringlet.data.input_context import InputContext as InputContext
    from ringlet.data.input_options import InputOptions as InputOptions
    from ringlet.data.input_options import InputReplicationMode as InputReplicationMode
    from ringlet.data.operations.assert_cardinality import assert_cardinality as assert_cardinality
    from ringlet.data.operations.at import at as at
    from ringlet.data.operations.shard import SHARD_HINT as SHARD_HINT
    from ringlet.data.optional import Optional as Optional
    from ringlet.data.policies import AutoShardPolicy as AutoShardPolicy
    from ringlet.data.policies import ExternalStatePolicy as ExternalStatePolicy
    from ringlet.data.readers.csv_dataset import CsvDataset as CsvDataset
    from ringlet.data.readers.example import decode_example as decode_example
    from ringlet.data.readers.example import parse_example as parse_example
    from ringlet.data.readers.example import parse_single_example as parse_single_example
    from ringlet.data.readers.example_features import FixedLenFeature as FixedLenFeature
    from ringlet.data.readers.example_features import FixedLenSequenceFeature as FixedLenSequenceFeature
    from ringlet.data.readers.example_features import VarLenFeature as VarLenFeature
    from ringlet.data.readers.example_features import VarLenRows as VarLenRows
    from ringlet.data.readers.example_writer import serialize_example as serialize_example
    from ringlet.data.readers.fixed_length import FixedLengthRecordDataset as FixedLengthRecordDataset
    from ringlet.data.readers.make_csv_dataset import make_csv_dataset as make_csv_dataset
    from ringlet.data.readers.text_line import TextLineDataset as TextLineDataset
    from ringlet.data.readers.tfrecord import TFRecordDataset as TFRecordDataset
    from ringlet.data.readers.tfrecord_writer import TFRecordWriter as TFRecordWriter
    from ringlet.data.tensor_spec import NoneTensorSpec as NoneTensorSpec
    from ringlet.data.tensor_spec import PerReplicaSpec as PerReplicaSpec
    from ringlet.data.tensor_spec import TensorSpec as TensorSpec

# Public name -> module below ringlet.data that defines it.
_PUBLIC = {
    "AUTOTUNE": "graph.count_arguments",
    "INFINITE_CARDINALITY": "graph.cardinality",
    "SHARD_HINT": "operations.shard",
    "UNKNOWN_CARDINALITY": "graph.cardinality",
    "AutoShardPolicy": "policies",
    "CsvDataset": "readers.csv_dataset",
    "Dataset": "dataset",
    "DatasetIterator": "dataset_iterator",
    "DatasetSpec": "dataset_spec",
    "DistributeOptions": "dataset_options",
    "DistributedDataset": "distribution.distributed_dataset",
    "DistributedIterator": "distribution.distributed_iterator",
    "ExternalStatePolicy": "policies",
    "FixedLenFeature": "readers.example_features",
    "FixedLenSequenceFeature": "readers.example_features",
    "FixedLengthRecordDataset": "readers.fixed_length",
    "InputContext": "input_context",
    "InputOptions": "input_options",
    "InputReplicationMode": "input_options",
    "NoneTensorSpec": "tensor_spec",
    "NumpyIterator": "dataset_iterator",
    "OptimizationOptions": "dataset_options",
    "Optional": "optional",
    "OptionalSpec": "dataset_spec",
    "Options": "dataset_options",
    "PerReplicaSpec": "tensor_spec",
    "TFRecordDataset": "readers.tfrecord",
    "TFRecordWriter": "readers.tfrecord_writer",
    "TensorSpec": "tensor_spec",
    "TextLineDataset": "readers.text_line",
    "ThreadingOptions": "dataset_options",
    "VarLenFeature": "readers.example_features",
    "VarLenRows": "readers.example_features",
    "assert_cardinality": "operations.assert_cardinality",
    "at": "operations.at",
    "decode_example": "readers.example",
    "explain": "explain_dataset",
    "make_csv_dataset": "readers.make_csv_dataset",
    "parse_example": "readers.example",
    "parse_single_example": "readers.example",
    "serialize_example": "readers.example_writer",
}
__all__ = list(_PUBLIC)

__getattr__ = load_on_use(__name__, _PUBLIC)
__dir__ = list_public(__name__)
