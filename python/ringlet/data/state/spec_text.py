"""JSON encoding of nests of specs."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from ringlet.data.dataset_spec import DatasetSpec, OptionalSpec
from ringlet.data.graph.element_structure import Nest
from ringlet.data.tensor_spec import NoneTensorSpec, TensorSpec
from ringlet.values.value_conversion import as_dtype


def spec_text(spec: Nest) -> Any:
    """Encode a nest of specs as a JSON value.

    Named tuples are encoded with their class and field names. The result is None if the nest contains other classes, or
    keys that are neither strings nor integers.
    """
    try:
        return _written(spec)
    except TypeError:
        return None


def _written(spec: Nest) -> Any:
    kind = type(spec)
    if kind is dict and all(isinstance(key, (str, int)) for key in spec):
        return {"dict": [[key, _written(child)] for key, child in spec.items()]}
    if kind is tuple or kind is list:
        return {kind.__name__: [_written(child) for child in spec]}
    if isinstance(spec, tuple) and hasattr(spec, "_fields"):
        return {"named": [kind.__name__, list(spec._fields), [_written(child) for child in spec]]}
    return _written_leaf(spec)


def _written_leaf(spec: Any) -> Any:
    if isinstance(spec, DatasetSpec):
        written = _written(spec.element_spec)
        return {"datasets": [list(spec.shape), written]} if spec.shape else {"dataset": written}
    if isinstance(spec, OptionalSpec):
        return {"optional": _written(spec.element_spec)}
    if isinstance(spec, NoneTensorSpec):
        return {"none": None}
    if isinstance(spec, TensorSpec):
        name = spec.dtype.name if spec.dtype.kind == "V" else spec.dtype.str
        return {"tensor": [None if spec.shape is None else list(spec.shape), name]}
    raise TypeError


def spec_of_text(text: Any) -> Nest:
    """Return the specs that `spec_text` encoded; named tuples get new classes."""
    try:
        ((kind, content),) = text.items()
        if kind == "dict":
            return {key: spec_of_text(child) for key, child in content}
        if kind in ("tuple", "list"):
            children = map(spec_of_text, content)
            return tuple(children) if kind == "tuple" else list(children)
        if kind == "named":
            name, fields, children = content
            return namedtuple(name, fields)(*map(spec_of_text, children))
        return _leaf_of_text(kind, content)
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"{text!r} is not an encoded spec") from error


def _leaf_of_text(kind: str, content: Any) -> Any:
    if kind == "dataset":
        return DatasetSpec(spec_of_text(content))
    if kind == "datasets":
        shape, child = content
        return DatasetSpec(spec_of_text(child), shape)
    if kind == "optional":
        return OptionalSpec(spec_of_text(content))
    if kind == "none":
        return NoneTensorSpec()
    shape, name = {"tensor": content}[kind]
    return TensorSpec(shape, as_dtype(name))
