"""``tf.data``: datasets with TensorFlow's dtypes and with tensors as elements."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

from ringlet import data
from ringlet.compat.tensorflow.absent import namespace, namespace_getter

# The redundant alias exports the class to type checkers, which cannot read the table below.
from ringlet.compat.tensorflow.dataset import Dataset as Dataset  # noqa: PLC0414
from ringlet.compat.tensorflow.dataset import DatasetIterator, dataset_maker
from ringlet.compat.tensorflow.elements import Optional, as_arrays
from ringlet.compat.tensorflow.tensor import Tensor, as_tensor
from ringlet.module_names import list_public


def _cardinality(dataset: Any) -> Tensor:
    return as_tensor(dataset.cardinality(), "int64")


def _same(*names: str) -> dict[str, Any]:
    """Return objects of ringlet.data by name."""
    return {name: getattr(data, name) for name in names}


def _readers(*names: str) -> dict[str, Any]:
    """Return, by name, functions that create datasets of tensors from files."""
    return {name: dataset_maker(reader) for name, reader in _same(*names).items()}


def _csv_reader(name: str, position: int, keyword: str) -> Any:
    """Return a reader of CSV files that yields tensors, with column defaults in TensorFlow's dtypes."""
    make = dataset_maker(getattr(data, name))

    @functools.wraps(make, updated=())
    def read(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        if len(given) > position:
            given[position] = _column_defaults(given[position])
        return make(*given, **{k: _column_defaults(v) if k == keyword else v for k, v in kwargs.items()})

    return read


def _column_defaults(given: Any) -> Any:
    return None if given is None else [c if isinstance(c, (type, np.dtype)) else as_arrays(c) for c in given]


def _transformations(*names: str) -> dict[str, Any]:
    """Return functions by name; each returns a transformation to pass to ``dataset.apply``."""

    def of(name: str) -> Any:
        operation = getattr(Dataset, name)

        @functools.wraps(operation)
        def transformation(*args: Any, **kwargs: Any) -> Any:
            return lambda dataset: getattr(dataset, name)(*args, **kwargs)

        signature = inspect.signature(operation)
        transformation.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=list(signature.parameters.values())[1:]
        )
        return transformation

    return {name: of(name) for name in names}


def _save(
    dataset: Any, path: Any, compression: Any = None, shard_func: Any = None, checkpoint_args: Any = None
) -> None:
    dataset.save(path, compression, shard_func, checkpoint_args)


_NAMES = {
    **_same("AUTOTUNE", "DatasetSpec", "INFINITE_CARDINALITY", "NumpyIterator", "Options", "ThreadingOptions"),
    **_same("UNKNOWN_CARDINALITY"),
    **_readers("FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"),
    "Dataset": Dataset,
    "Iterator": DatasetIterator,
    "experimental": namespace(
        "tf.data.experimental",
        "Experimental names of tf.data.",
        {
            **_same("AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "SHARD_HINT"),
            **_same("AutoShardPolicy", "DistributeOptions", "ExternalStatePolicy", "ThreadingOptions"),
            **_same("OptimizationOptions", "TFRecordWriter", "assert_cardinality"),
            "CsvDataset": _csv_reader("CsvDataset", 1, "record_defaults"),
            **_transformations("bucket_by_sequence_length", "group_by_window", "ignore_errors", "rejection_resample"),
            **_transformations("scan", "snapshot", "take_while", "unbatch", "unique"),
            "Counter": Dataset.counter,
            "Optional": Optional,
            "RandomDataset": Dataset.random,
            "at": dataset_maker(data.at),
            "cardinality": _cardinality,
            "choose_from_datasets": Dataset.choose_from_datasets,
            "enumerate_dataset": _transformations("enumerate")["enumerate"],
            "from_list": Dataset.from_list,
            "get_next_as_optional": lambda iterator: iterator.get_next_as_optional(),
            "get_single_element": lambda dataset: dataset.get_single_element(),
            "get_structure": lambda dataset_or_iterator: dataset_or_iterator.element_spec,
            "load": Dataset.load,
            "make_csv_dataset": _csv_reader("make_csv_dataset", 3, "column_defaults"),
            "sample_from_datasets": Dataset.sample_from_datasets,
            "save": _save,
        },
    ),
}

__all__ = list(_NAMES)

__getattr__ = namespace_getter("tf.data", _NAMES)
__dir__ = list_public(__name__)
