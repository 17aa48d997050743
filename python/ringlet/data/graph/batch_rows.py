"""Rows of batches: counting, slicing, joining, and examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import common_kind, in_kind_of
from ringlet.data.graph.element_structure import Nest, paths
from ringlet.data.graph.spec_inference import spec_of
from ringlet.data.tensor_spec import NoneTensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten, map_structure


def num_rows(batch: Nest) -> int:
    """Return the common number of rows of all arrays of a batch; zero if it has no arrays."""
    if type(batch) is np.ndarray and batch.ndim:
        return len(batch)
    leaves = flatten(batch)[0]
    shapes: list[tuple[int, ...]] = [getattr(leaf, "shape", ()) for leaf in leaves if leaf is not None]
    if not all(shapes):
        raise InvalidArgumentError(
            f"every component of an element must be non-scalar to be split into rows, got {batch!r}. Call "
            "dataset.batch(batch_size) first."
        )
    rows = {shape[0] for shape in shapes}
    if len(rows) > 1:
        parts = zip(paths(batch), leaves, strict=True)
        named = ", ".join(f"element{path}: {len(leaf)}" for path, leaf in parts if leaf is not None)
        raise InvalidArgumentError(
            f"all arrays of an element must have the same batch size to be split into rows, got {named}."
        )
    return int(rows.pop()) if rows else 0


def cut(leaf: Any, rows: slice) -> Any:
    """Return rows of one component; None if the component is None."""
    return None if leaf is None else leaf[rows]


def join_rows(arrays: Sequence[Any]) -> Any:
    """Concatenate the rows of arrays of one library; None for a None component. NumPy results are read-only."""
    if arrays[0] is None:
        return None
    kind = common_kind(arrays, "batch")
    try:
        joined = np.concatenate([np.asarray(array) if kind is None else kind.as_ndarray(array) for array in arrays])
    except ValueError as error:
        shapes = ", ".join(str(tuple(array.shape)) for array in arrays)
        raise InvalidArgumentError(f"batches must have rows of the same shape to be joined, got {shapes}.") from error
    if kind is not None:
        return in_kind_of(arrays[0], joined, is_own=True)
    joined.setflags(write=False)
    return joined


def empty_like_spec(spec: Any) -> Any:
    """Return an array with zero rows for a spec; other unknown dimensions also become zero. None for NoneTensorSpec."""
    if isinstance(spec, NoneTensorSpec):
        return None
    empty = np.zeros([0, *(size or 0 for size in (spec.shape or (0,))[1:])], spec.dtype)
    empty.setflags(write=False)
    return empty


def zeros_like_spec(spec: Any) -> Any:
    """Return an example that conforms to a spec: zeros, empty text or None, with unknown dimensions of size one."""
    if isinstance(spec, NoneTensorSpec):
        return None
    sizes = [1 if size is None else size for size in spec.shape or ()]
    return np.full(sizes, b"" if spec.dtype == object else np.zeros((), spec.dtype)[()], spec.dtype)[()]


def example_rows(example: Nest, count: int) -> Nest:
    """Return a batch that repeats the first row of an example `count` times; zeros or empty text if it has no rows."""

    def leaf(array: Any) -> Any:
        if array is None:
            return None
        row = array[:1] if array.shape[0] else zeros_like_spec(spec_of(array).with_rows(1))
        return np.broadcast_to(row, (count, *array.shape[1:]))

    return map_structure(leaf, example)
