"""The small language in which the recorded dataset cases write their pipelines, on ringlet's datasets.

Recorded from tensorflow-cpu 2.21.0 (NumPy 2.4, Python 3.11, eager mode, CPU). A pipeline is a list of operations, the
first of which is a source. Values are plain JSON plus tagged objects: ``{"__array__": [dtype, shape, flat]}`` (dtype
"string" is bytes as latin-1 text), ``{"__tuple__": [...]}``, ``{"__tensor_spec__": [dtype, shape]}``,
``{"__per_replica_spec__": [...]}``.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ringlet import nest
from ringlet.data import (
    SHARD_HINT,
    AutoShardPolicy,
    Dataset,
    Options,
    PerReplicaSpec,
    TensorSpec,
    TextLineDataset,
    TFRecordDataset,
    TFRecordWriter,
)
from ringlet.values import PerReplica

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pair": lambda x: (x, x * x),
    "dict": lambda x: {"a": x, "b": np.float32(x) * np.float32(0.5)},
    "nested": lambda x: ({"u": x, "v": (x + 1, x + 2)}, np.asarray(x).astype(np.float32)),
    "vector": lambda x: np.float32([x, x + 0.5, -x]),
    "square": lambda x: x * x,
    "string": lambda x: str(x).encode(),
    "upto": Dataset.range,
    "repeat3": lambda x: Dataset.from_tensors(x).repeat(3),
    "text": TextLineDataset,
    "tfrecord": TFRecordDataset,
    "even": lambda x: x % 2 == 0,
    "gt3": lambda x: x > 3,
}

Path = Callable[[str], str]


def _options(dataset: Dataset, o: dict[str, Any], path: Path) -> Dataset:
    options = Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[o["auto_shard_policy"]]
    return dataset.with_options(options)


def _interleave(dataset: Dataset, o: dict[str, Any], path: Path) -> Dataset:
    function, parallel = FUNCTIONS[o["fn"]], o.get("num_parallel_calls")
    return dataset.interleave(function, o["cycle_length"], o.get("block_length", 1), num_parallel_calls=parallel)


OPERATIONS: dict[str, Callable[[Dataset, dict[str, Any], Path], Dataset]] = {
    "batch": lambda dataset, o, _: dataset.batch(o["size"], drop_remainder=o.get("drop_remainder", False)),
    "cache": lambda dataset, o, _: dataset.cache(),
    "concatenate": lambda dataset, o, path: dataset.concatenate(build(o["other"], path)),
    "enumerate": lambda dataset, o, _: dataset.enumerate(),
    "filter": lambda dataset, o, _: dataset.filter(FUNCTIONS[o["fn"]]),
    "flat_map": lambda dataset, o, _: dataset.flat_map(FUNCTIONS[o["fn"]]),
    "interleave": _interleave,
    "map": lambda dataset, o, _: dataset.map(FUNCTIONS[o["fn"]]),
    "options": _options,
    "prefetch": lambda dataset, o, _: dataset.prefetch(o["size"]),
    "rebatch": lambda dataset, o, _: dataset.rebatch(o["size"], drop_remainder=o.get("drop_remainder", False)),
    "repeat": lambda dataset, o, _: dataset.repeat(o.get("count", -1)),
    "shard": lambda dataset, o, _: dataset.shard(o["num_shards"], o["index"]),
    "shard_hint": lambda dataset, o, _: dataset.shard(SHARD_HINT, SHARD_HINT),
    "skip": lambda dataset, o, _: dataset.skip(o["count"]),
    "take": lambda dataset, o, _: dataset.take(o["count"]),
    "unbatch": lambda dataset, o, _: dataset.unbatch(),
    "zip": lambda dataset, o, path: Dataset.zip((dataset, build(o["other"], path))),
}


class RaggedBatches:
    """Vectors of given lengths with consecutive numbers: a source of batches of unequal size."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes

    def __iter__(self) -> Iterator[np.ndarray]:
        stops = np.cumsum(self.sizes)
        return (np.arange(stop - size, stop) for size, stop in zip(self.sizes, stops, strict=True))


SOURCES: dict[str, Callable[[dict[str, Any], Path], Any]] = {
    "files": lambda o, path: Dataset.from_tensor_slices([path(name) for name in o["files"]]),
    "from_tensor_slices": lambda o, _: Dataset.from_tensor_slices(decode(o["value"])),
    "from_tensors": lambda o, _: Dataset.from_tensors(decode(o["value"])),
    "list_files": lambda o, path: Dataset.list_files(path(o["pattern"]), shuffle=o.get("shuffle", False)),
    "ragged_batches": lambda o, _: Dataset.from_iterable(RaggedBatches(o["sizes"])),
    "range": lambda o, _: Dataset.range(*o["args"]),
    "text_lines": lambda o, path: TextLineDataset([path(name) for name in o["files"]]),
    "tfrecords": lambda o, path: TFRecordDataset([path(name) for name in o["files"]]),
}


def load(area: str) -> list[dict[str, Any]]:
    """Return the recorded cases of an area, from the folder in RINGLET_ORACLE or the copy in the tree."""
    folder = pathlib.Path(os.environ.get("RINGLET_ORACLE") or pathlib.Path(__file__).parent / "public")
    cases: list[dict[str, Any]] = json.loads((folder / f"{area}.json").read_text(encoding="utf-8"))["cases"]
    return cases


def build(operations: list[dict[str, Any]], path: Path = str) -> Dataset:
    """Create the dataset that a pipeline describes; `path` maps names to files."""
    dataset = SOURCES[operations[0]["op"]](operations[0], path)
    for operation in operations[1:]:
        dataset = OPERATIONS[operation["op"]](dataset, operation, path)
    return dataset


def written(given: dict[str, Any], folder: pathlib.Path) -> Path:
    """Write the files of a case to a folder; return a function that maps their names to paths."""
    for name, lines in given.get("files", {}).items():
        if given["file_kind"] == "text":
            (folder / name).write_bytes(b"".join(line.encode() + b"\n" for line in lines))
        else:
            with TFRecordWriter(str(folder / name)) as writer:
                for line in lines:
                    writer.write(line.encode())
    return lambda name: str(folder / name)


def decode(value: Any) -> Any:
    """Convert recorded arrays and tuples to arrays and tuples."""
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
    """Encode values and specs in the format of the recordings."""
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
    """Return each replica's part, in replica order."""
    if num_replicas == 1:
        return [step]
    return [nest.map_structure(lambda value, r=replica: value.values[r], step) for replica in range(num_replicas)]
