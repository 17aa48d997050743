"""The small language in which the recorded dataset cases write their pipelines, on ringlet's datasets.

Recorded from tensorflow-cpu 2.21.0 (NumPy 2.4, Python 3.11, eager mode, CPU). A pipeline is a list of operations, the
first of which is a source. Values are plain JSON plus tagged objects: ``{"__array__": [dtype, shape, flat]}`` (dtype
"string" is bytes as latin-1 text), ``{"__tuple__": [...]}``, ``{"__tensor_spec__": [dtype, shape]}``,
``{"__per_replica_spec__": [...]}``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ringlet import nest
from ringlet.data import Dataset, PerReplicaSpec, TensorSpec
from ringlet.values import PerReplica

# Operations of the language that ringlet cannot run yet.
LATER_OPERATIONS = {
    "cache",
    "concatenate",
    "enumerate",
    "files",
    "filter",
    "flat_map",
    "from_tensors",
    "interleave",
    "list_files",
    "options",
    "rebatch",
    "shard",
    "shard_hint",
    "skip",
    "text_lines",
    "tfrecords",
    "unbatch",
    "zip",
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pair": lambda x: (x, x * x),
    "dict": lambda x: {"a": x, "b": np.float32(x) * np.float32(0.5)},
    "nested": lambda x: ({"u": x, "v": (x + 1, x + 2)}, np.asarray(x).astype(np.float32)),
    "vector": lambda x: np.float32([x, x + 0.5, -x]),
    "square": lambda x: x * x,
    "string": lambda x: str(x).encode(),
}

OPERATIONS: dict[str, Callable[[Dataset, dict[str, Any]], Dataset]] = {
    "map": lambda dataset, o: dataset.map(FUNCTIONS[o["fn"]]),
    "batch": lambda dataset, o: dataset.batch(o["size"], drop_remainder=o.get("drop_remainder", False)),
    "repeat": lambda dataset, o: dataset.repeat(o.get("count", -1)),
    "take": lambda dataset, o: dataset.take(o["count"]),
    "prefetch": lambda dataset, o: dataset.prefetch(o["size"]),
}


class RaggedBatches:
    """Vectors of given lengths that count on from one to the next; the source of batches of unequal size."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes

    def __iter__(self) -> Iterator[np.ndarray]:
        stops = np.cumsum(self.sizes)
        return (np.arange(stop - size, stop) for size, stop in zip(self.sizes, stops, strict=True))


SOURCES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "range": lambda o: Dataset.range(*o["args"]),
    "from_tensor_slices": lambda o: Dataset.from_tensor_slices(decode(o["value"])),
    "ragged_batches": lambda o: RaggedBatches(o["sizes"]),
}


def load(area: str) -> list[dict[str, Any]]:
    """Give the recorded cases of an area, from the folder that RINGLET_ORACLE names or our own copy."""
    folder = Path(os.environ.get("RINGLET_ORACLE") or Path(__file__).parent / "public")
    cases: list[dict[str, Any]] = json.loads((folder / f"{area}.json").read_text(encoding="utf-8"))["cases"]
    return cases


def build(operations: list[dict[str, Any]]) -> Dataset | Iterable[Any]:
    """Make the dataset that a pipeline describes."""
    dataset = SOURCES[operations[0]["op"]](operations[0])
    for operation in operations[1:]:
        dataset = OPERATIONS[operation["op"]](dataset, operation)
    return dataset


def later_operations(operations: list[dict[str, Any]]) -> list[str]:
    """Give the operations of a pipeline that cannot run yet, in alphabetical order."""
    return sorted({operation["op"] for operation in operations} & LATER_OPERATIONS)


def decode(value: Any) -> Any:
    """Make arrays and tuples of recorded ones."""
    if isinstance(value, dict) and "__array__" in value:
        dtype, shape, flat = value["__array__"]
        if dtype == "string":
            flat, dtype = [text.encode("latin-1") for text in flat], object
        array = np.empty(len(flat), dtype)
        array[:] = flat
        return array.reshape(shape)
    if isinstance(value, dict) and "__tuple__" in value:
        return tuple(map(decode, value["__tuple__"]))
    if isinstance(value, dict):
        return {key: decode(child) for key, child in value.items()}
    return [decode(child) for child in value] if isinstance(value, list) else value


def encode(value: Any) -> Any:
    """Write values and specs as the recordings do."""
    if isinstance(value, bytes):
        value = np.array(value, dtype=object)
    for kind, write in WRITERS.items():
        if isinstance(value, kind):
            return write(value)
    return value


def _encode_array(array: np.ndarray | np.generic) -> dict[str, Any]:
    flat = [x.decode("latin-1") if isinstance(x, bytes) else x for x in np.ravel(array).tolist()]
    return {"__array__": [_dtype_name(array.dtype), list(array.shape), flat]}


def _encode_spec(spec: TensorSpec) -> dict[str, Any]:
    return {"__tensor_spec__": [_dtype_name(spec.dtype), None if spec.shape is None else list(spec.shape)]}


WRITERS: dict[type, Callable[[Any], Any]] = {
    np.ndarray: _encode_array,
    np.generic: _encode_array,
    TensorSpec: _encode_spec,
    PerReplicaSpec: lambda spec: {"__per_replica_spec__": [encode(one) for one in spec.value_specs]},
    PerReplica: lambda value: {"__per_replica__": [encode(one) for one in value.values]},
    tuple: lambda nest: {"__tuple__": [encode(child) for child in nest]},
    dict: lambda nest: {key: encode(child) for key, child in nest.items()},
    list: lambda nest: [encode(child) for child in nest],
}


def _dtype_name(dtype: np.dtype) -> str:
    return "string" if dtype.kind in "SO" else dtype.name


def local_results(step: Any, num_replicas: int) -> list[Any]:
    """Give the part of each replica, in their order."""
    if num_replicas == 1:
        return [step]
    return [nest.map_structure(lambda value, r=replica: value.values[r], step) for replica in range(num_replicas)]
