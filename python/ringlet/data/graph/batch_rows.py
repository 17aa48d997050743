"""Elements that are batches, as rows: how many, cut, joined and made up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import common_kind, in_kind_of
from ringlet.data.graph.element_structure import Nest, paths
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten, map_structure

__all__ = ["empty_like_spec", "example_rows", "join_rows", "num_rows", "zeros_like_spec"]


def num_rows(batch: Nest) -> int:
    """Give the number of rows that all arrays of a batch have.

    Raises
    ------
    InvalidArgumentError
        If one has no rows, or they differ.

    Examples
    --------
    >>> num_rows({"x": np.zeros((3, 2)), "y": np.zeros(3)})
    3
    """
    if type(batch) is np.ndarray and batch.ndim:
        return len(batch)
    leaves = flatten(batch)[0]
    if not all(getattr(leaf, "shape", ()) for leaf in leaves):
        raise InvalidArgumentError(
            f"an element must have rows in each component (a non-scalar value) to be cut, and this one has not: "
            f"{batch!r}. Call dataset.batch(batch_size) first."
        )
    rows = [leaf.shape[0] for leaf in leaves]
    if len(set(rows)) > 1:
        named = ", ".join(f"element{path}: {count}" for path, count in zip(paths(batch), rows, strict=True))
        raise InvalidArgumentError(f"all arrays of an element need the same batch size to be rebatched ({named}).")
    return int(rows[0]) if rows else 0


def join_rows(arrays: Sequence[Any]) -> Any:
    """Put the rows of arrays one behind another; the result is of their kind, and read-only if it is NumPy's.

    Raises
    ------
    InvalidArgumentError
        If they differ in more than the number of rows, or are arrays of different libraries.

    Examples
    --------
    >>> join_rows([np.array([1, 2]), np.array([3])])
    array([1, 2, 3])
    """
    kind = common_kind(arrays, "batch")
    try:
        joined = np.concatenate([np.asarray(array) if kind is None else kind.as_ndarray(array) for array in arrays])
    except ValueError as error:
        shapes = ", ".join(str(tuple(array.shape)) for array in arrays)
        raise InvalidArgumentError(f"batches whose rows differ in shape cannot be joined: {shapes}.") from error
    if kind is not None:
        return in_kind_of(arrays[0], joined, is_own=True)
    joined.setflags(write=False)
    return joined


def empty_like_spec(spec: TensorSpec) -> Any:
    """Make an array without rows that follows a spec, and without entries along other dimensions that are not known.

    Examples
    --------
    >>> empty_like_spec(TensorSpec([None, 3], np.float64)).shape
    (0, 3)
    """
    empty = np.zeros([0, *(size or 0 for size in (spec.shape or (0,))[1:])], spec.dtype)
    empty.setflags(write=False)
    return empty


def zeros_like_spec(spec: TensorSpec) -> Any:
    """Make up an example that follows a spec: zeros or empty text, one along dimensions that are not known.

    Examples
    --------
    >>> zeros_like_spec(TensorSpec([None, 2], np.int64)), zeros_like_spec(TensorSpec([], object))
    (array([[0, 0]]), b'')
    """
    sizes = [1 if size is None else size for size in spec.shape or ()]
    return np.full(sizes, b"" if spec.dtype == object else np.zeros((), spec.dtype)[()], spec.dtype)[()]


def example_rows(example: Nest, count: int) -> Nest:
    """Make a batch of `count` rows out of an example of another number of rows.

    Examples
    --------
    >>> example_rows(np.array([7, 8]), 3)
    array([7, 7, 7])
    """

    def leaf(array: Any) -> Any:
        row = array[:1] if array.shape[0] else zeros_like_spec(TensorSpec.from_array(array).with_rows(1))
        return np.broadcast_to(row, (count, *array.shape[1:]))

    return map_structure(leaf, example)
