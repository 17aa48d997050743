"""tf.data: datasets with TensorFlow's dtypes, whose elements are tensors."""

from __future__ import annotations

from typing import Any

from ringlet import data
from ringlet.compat.tensorflow.absent import namespace, namespace_getter

# The second name exports the class to type checkers, which cannot read the table below.
from ringlet.compat.tensorflow.dataset import Dataset as Dataset  # noqa: PLC0414
from ringlet.compat.tensorflow.dataset import DatasetIterator, dataset_maker
from ringlet.compat.tensorflow.elements import Optional
from ringlet.compat.tensorflow.tensor import Tensor, as_tensor


def _cardinality(dataset: Any) -> Tensor:
    """Give the number of elements of a dataset as a tensor."""
    return as_tensor(dataset.cardinality(), "int64")


def _same(*names: str) -> dict[str, Any]:
    """Names of ringlet.data that mean the same here."""
    return {name: getattr(data, name) for name in names}


def _readers(*names: str) -> dict[str, Any]:
    """Classes of datasets over files, as functions that give datasets of tensors."""
    return {name: dataset_maker(reader) for name, reader in _same(*names).items()}


_NAMES = {
    **_same("AUTOTUNE", "DatasetSpec", "INFINITE_CARDINALITY", "NumpyIterator", "Options", "ThreadingOptions"),
    **_same("UNKNOWN_CARDINALITY"),
    **_readers("FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"),
    "Dataset": Dataset,
    "Iterator": DatasetIterator,
    "experimental": namespace(
        "tf.data.experimental",
        "What of tf.data may still change.",
        {
            **_same("AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "SHARD_HINT"),
            **_same("AutoShardPolicy", "DistributeOptions", "ExternalStatePolicy", "ThreadingOptions"),
            **_same("OptimizationOptions", "TFRecordWriter", "assert_cardinality"),
            "Optional": Optional,
            "at": dataset_maker(data.at),
            "cardinality": _cardinality,
            "choose_from_datasets": Dataset.choose_from_datasets,
            "from_list": Dataset.from_list,
            "sample_from_datasets": Dataset.sample_from_datasets,
        },
    ),
}

__all__ = list(_NAMES)

__getattr__ = namespace_getter("tf.data", _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
