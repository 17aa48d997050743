"""Encoding of elements in the state of a stream: nests of arrays become plain values that can be stored in a file.

Tuples, lists and dictionaries are saved with their structure. Other structures (named tuples, registered classes), also
those of elements of datasets and Optionals, are saved as their leaves and rebuilt in the structure of
`Node.element_spec`, so that no class is looked up by a name read from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import in_kind_of, kind_of
from ringlet.data.graph.element_structure import Array, Nest, has_datasets, is_dataset, is_optional, read_only
from ringlet.data.graph.node import Node, State
from ringlet.data.graph.sources import Elements, TableSource
from ringlet.data.optional import Optional
from ringlet.data.state.spec_text import spec_of_text, spec_text
from ringlet.nest import PLAIN_TYPES, flatten, is_nested, unflatten

_NUMBERS = "biufc"

# Array types besides ndarray that can be saved, each with a function that returns an example array.
_EXAMPLES: dict[str, Callable[[], Any]] = {
    "torch.Tensor": lambda: import_module("torch").empty(0),
    "jax.Array": lambda: import_module("jax.numpy").zeros(0),
}


class _NotPlain(Exception):
    """Raised for a structure that cannot be saved as tuples, lists and dictionaries."""


def save_elements(elements: Sequence[Nest]) -> State:
    """Encode elements as a state, stacked if they are numeric and corresponding arrays have equal dtypes and shapes."""
    try:
        columns = _stacked(elements)
        if columns is not None:
            return {"columns": _saved(columns), "count": len(elements)}
        return {"elements": [_saved(element) for element in elements]}
    except _NotPlain:
        return {"leaves": [[_saved_leaf(leaf) for leaf in flatten(element)[0]] for element in elements]}


def load_elements(state: State, node: Node) -> list[Nest]:
    """Decode the result of `save_elements`; NumPy arrays are read-only. `node` yields elements of equal structure."""
    if "columns" in state:
        leaves, shape = flatten(_loaded(state["columns"]))
        return [unflatten(shape, [leaf[row] for leaf in leaves]) for row in range(state["count"])]
    if "elements" in state:
        return [_loaded(saved) for saved in state["elements"]]
    specs, shape = flatten(node.element_spec)
    return [unflatten(shape, map(_loaded, saved, specs)) for saved in state["leaves"]]


def save_element(element: Nest) -> State:
    """Encode one element as a state."""
    return save_elements([element])


def load_element(state: State, node: Node) -> Nest:
    """Decode the result of `save_element`."""
    (element,) = load_elements(state, node)
    return element


def save_value(value: Any) -> State:
    """Encode plain values and arrays, nested in tuples, lists and dictionaries, as a state."""
    try:
        return {"value": _saved(value)}
    except _NotPlain:
        raise TypeError(
            f"cannot save {value!r}: expected tuples, lists and dictionaries whose keys are strings or integers"
        ) from None


def load_value(state: State) -> Any:
    """Decode the result of `save_value`."""
    return _loaded(state["value"])


def _stacked(elements: Sequence[Nest]) -> Nest | None:
    """Return stacked elements; None for fewer than two, or unless leaves are numeric, of equal dtypes and shapes."""
    if len(elements) < 2:
        return None
    first, shape = flatten(elements[0])
    kinds = [_number_kind(leaf) for leaf in first]
    if None in kinds:
        return None
    rows = [first]
    for element in elements[1:]:
        leaves, other = flatten(element)
        if other != shape or [_number_kind(leaf) for leaf in leaves] != kinds:
            return None
        rows.append(leaves)
    return unflatten(shape, [np.stack(column) for column in zip(*rows, strict=True)])


def _number_kind(leaf: Any) -> Any:
    if (type(leaf) is np.ndarray and leaf.ndim) or isinstance(leaf, (np.number, np.bool_)):
        return (leaf.dtype, leaf.shape) if leaf.dtype.kind in _NUMBERS else None
    return None


def _saved(value: Nest) -> Any:
    kind = type(value)
    if kind is tuple or kind is list:
        return {kind.__name__: [_saved(child) for child in value]}
    if kind is dict:
        if not all(isinstance(key, (str, int)) for key in value):
            raise _NotPlain
        return {"dict": [[key, _saved(child)] for key, child in value.items()]}
    if is_nested(value):
        raise _NotPlain
    saved = _saved_leaf(value)
    if _needs_spec(saved):
        raise _NotPlain
    return saved


def _needs_spec(saved: Any) -> bool:
    """Return whether a saved dataset or Optional has elements that are saved as their leaves."""
    if not isinstance(saved, dict):
        return False
    if "datasets" in saved:
        return any(map(_needs_spec, saved["datasets"]))
    return any(isinstance(part, dict) and "leaves" in part for part in saved.values())


def _saved_leaf(leaf: Any) -> Any:
    if type(leaf) in PLAIN_TYPES and type(leaf) is not complex:
        return leaf
    saved = _saved_object(leaf)
    if saved is not None:
        return saved
    kind = kind_of(leaf)
    if kind is not None and kind.name in _EXAMPLES:
        return {"kind": kind.name, "array": kind.as_ndarray(leaf).copy()}
    if not isinstance(leaf, (np.ndarray, np.generic)):
        raise TypeError(
            f"cannot save an element that holds a {type(leaf).__name__}: {leaf!r}. Convert it to an array in a map "
            "before the operation that buffers elements (shuffle, prefetch, ...)."
        )
    return _saved_array(leaf)


def _saved_object(leaf: Any) -> State | None:
    """Return the state of an Optional or a dataset; None for other leaves, and for datasets that cannot be saved."""
    if is_optional(leaf):
        value = [leaf.get_value()] if leaf.has_value() else []
        return {"optional": save_elements(value), "spec": spec_text(leaf.element_spec)}
    if not is_dataset(leaf):
        return None
    if isinstance(leaf.node, TableSource):
        rows = leaf.node.rows.batch(slice(0, leaf.node.rows.length))
        try:
            return {"rows": _saved(rows)}
        except _NotPlain:
            return {"rows": save_element(rows)}
    if isinstance(leaf.node, Elements):
        return {"dataset": save_elements(leaf.node.elements)}
    reference = getattr(leaf.node, "reference", None)
    return None if reference is None else {"shard": reference}


def _saved_array(leaf: Any) -> Any:
    dtype = leaf.dtype
    # dtypes of other packages (ml_dtypes) have kind void, but no fields.
    if dtype.kind in _NUMBERS or (dtype.kind == "V" and dtype.isbuiltin == 2):
        return leaf
    array, common = np.asarray(leaf), {"dtype": dtype.str, "is_scalar": isinstance(leaf, np.generic)}
    if dtype.kind in "mM":
        return {**common, "numbers": array.view(np.int64)}
    if has_datasets(array):
        return {"datasets": [_saved_leaf(dataset) for dataset in array.flat], "shape": list(array.shape)}
    if dtype.kind in "OUS":
        return {**common, "shape": list(array.shape), "items": array.ravel().tolist()}
    raise TypeError(
        f"cannot save an element with an array of dtype {dtype}. Split the array into several arrays in a map."
    )


def _loaded(saved: Any, spec: Any = None) -> Nest:
    if not isinstance(saved, dict):
        return read_only(saved) if isinstance(saved, np.ndarray) else saved
    if saved.keys() & {"dataset", "datasets", "optional", "rows", "shard"}:
        return _loaded_object(saved, Elements((), getattr(spec, "element_spec", None)))
    if "dtype" in saved:
        return _loaded_array(saved)
    if "kind" in saved:
        return in_kind_of(_EXAMPLES[saved["kind"]](), np.asarray(saved["array"]))
    ((kind, children),) = saved.items()
    if kind == "dict":
        return {key: _loaded(child) for key, child in children}
    values = [_loaded(child) for child in children]
    return tuple(values) if kind == "tuple" else values


def _loaded_object(saved: State, inner: Elements) -> Any:
    """Return a dataset, an array of datasets, or an Optional; `inner` has the specs of its elements."""
    # Circular import: the dataset operations import this module.
    from ringlet.data.dataset import Dataset

    if "optional" in saved:
        value = load_elements(saved["optional"], inner)
        return Optional(*value) if value else Optional.empty(spec_of_text(saved["spec"]))

    if "shard" in saved:
        from ringlet.data.operations.load import SavedShard

        return Dataset(SavedShard.of(saved["shard"]))
    if "datasets" in saved:
        array = np.empty(len(saved["datasets"]), object)
        array[:] = [_loaded_object(dataset, inner) for dataset in saved["datasets"]]
        return read_only(array.reshape(saved["shape"]))
    if "rows" in saved:
        rows = saved["rows"]
        is_leaves = isinstance(rows, dict) and "leaves" in rows
        return Dataset.from_tensor_slices(load_element(rows, inner) if is_leaves else _loaded(rows))
    return Dataset(Elements(tuple(load_elements(saved["dataset"], inner))))


def _loaded_array(saved: dict[str, Any]) -> Any:
    dtype = np.dtype(saved["dtype"])
    if "numbers" in saved:
        array: Array = np.asarray(saved["numbers"]).view(dtype)
    else:
        array = np.empty(len(saved["items"]), dtype)
        array[:] = saved["items"]
        array = array.reshape(saved["shape"])
    return array[()] if saved["is_scalar"] else read_only(array)
