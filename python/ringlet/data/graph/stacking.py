"""Batching of elements: their leaves, except None, are stacked along a new first dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import common_kind
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.dataset_spec import OptionalSpec
from ringlet.data.graph.adapter_column import stack_adapted
from ringlet.data.graph.element_structure import LEAF_TYPES, Nest, is_dataset, is_optional, paths
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten, unflatten

# Markers used in place of a dtype: text and datasets are stacked in arrays of objects, None stays None.
_TEXT = "str or bytes"
_NONE = "None"
_DATASET = "a dataset"


def stack(elements: list[Nest]) -> Nest:
    """Stack elements along a new first dimension; NumPy results are read-only, None stays None."""
    types = set(map(type, elements))
    if all(kind is np.ndarray or issubclass(kind, LEAF_TYPES) for kind in types):
        return _stack_leaves(elements, elements[0], 0)
    first, shape = flatten(elements[0])
    rows = [first]
    for number, element in enumerate(elements[1:], 1):
        leaves, other = flatten(element)
        if other != shape:
            raise InvalidArgumentError(
                f"cannot batch elements of different structure: the first is {shape}, element {number} is {other}. "
                "Convert them to one structure in a map before the batch."
            )
        rows.append(leaves)
    columns = zip(*rows, strict=True)
    return unflatten(shape, [_stack_leaves(column, elements[0], at) for at, column in enumerate(columns)])


def _stack_leaves(leaves: Any, element: Nest, component: int) -> Any:
    types = set(map(type, leaves))
    if len(types) == 1 and issubclass(next(iter(types)), (np.number, np.bool_)):
        kinds = {_kind(leaves[0])}  # the type of a scalar implies its shape and dtype
    else:
        kinds = set(map(_kind, leaves))
    if len(kinds) > 1 and all(map(_is_text, leaves)):  # for example, np.str_ from an array and str from a function
        leaves = [leaf.astype(object) if hasattr(leaf, "dtype") else leaf for leaf in leaves]
        kinds = set(map(_kind, leaves))
    if len(kinds) > 1:
        raise _difference(leaves, f"component {component}{_path(element, component)}")
    shape, dtype = kinds.pop()
    is_other = not all(kind is np.ndarray or issubclass(kind, LEAF_TYPES) for kind in types)
    if is_other and common_kind(leaves, "element") is not None:
        return stack_adapted(leaves)
    if dtype is _NONE:
        return None
    if dtype is _TEXT or dtype is _DATASET:
        stacked = np.empty(len(leaves), object)
        stacked[:] = leaves
    elif shape:
        # Like np.stack, but without creating a view of every leaf.
        stacked = np.concatenate(leaves).reshape(len(leaves), *shape)
    else:
        stacked = np.array(leaves)
    stacked.setflags(write=False)
    return stacked


def _kind(leaf: Any) -> tuple[tuple[int, ...], Any]:
    """Return the shape of a leaf, and its dtype or a marker for it, for comparison within a batch."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        dtype = leaf.dtype
        return leaf.shape, dtype.kind if dtype.kind in "US" else dtype
    if isinstance(leaf, (str, bytes)):
        return (), _TEXT
    if leaf is None:
        return (), _NONE
    if is_dataset(leaf):
        return (), _DATASET
    if is_optional(leaf):
        OptionalSpec.from_value(leaf).with_batch(None)  # raises TypeError
    array = as_ndarray(leaf)
    return array.shape, array.dtype


def _is_text(leaf: Any) -> bool:
    return isinstance(leaf, (str, bytes)) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind in "OUS")


def _difference(leaves: Any, where: str) -> InvalidArgumentError:
    shape, dtype = _kind(leaves[0])
    number = next(number for number, leaf in enumerate(leaves) if _kind(leaf) != (shape, dtype))
    other_shape, other_dtype = _kind(leaves[number])
    if other_shape != shape:
        return InvalidArgumentError(
            f"cannot batch arrays of different shapes in {where}: the first element has shape {list(shape)}, element "
            f"{number} has shape {list(other_shape)}. Pad or truncate them in a map before the batch, or drop the "
            "remainder of an earlier batch."
        )
    return InvalidArgumentError(
        f"cannot batch arrays of different dtypes in {where}: the first element is {dtype}, element {number} is "
        f"{other_dtype}. Convert them in a map before the batch."
    )


def _path(element: Nest, component: int) -> str:
    path = paths(element)[component]
    return f" (element{path})" if path else ""
