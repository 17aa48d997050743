"""Inference of specs from values, and the most specific spec of several."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ringlet.data.dataset_spec import DatasetSpec, OptionalSpec
from ringlet.data.graph.element_structure import Nest, has_datasets, is_dataset, is_optional
from ringlet.data.tensor_spec import NoneTensorSpec, TensorSpec
from ringlet.nest import flatten, unflatten

__all__ = ["common_spec", "row_spec", "spec_of"]

LeafSpec = TensorSpec | DatasetSpec | OptionalSpec | NoneTensorSpec


def spec_of(leaf: Any) -> LeafSpec:
    """Return the spec of one leaf of an element."""
    if leaf is None:
        return NoneTensorSpec()
    if is_dataset(leaf):
        return DatasetSpec.from_value(leaf)
    if is_optional(leaf):
        return OptionalSpec.from_value(leaf)
    if isinstance(leaf, np.ndarray) and has_datasets(leaf):
        return DatasetSpec(common_spec([dataset.element_spec for dataset in leaf.flat]), leaf.shape)
    return TensorSpec.from_array(leaf)


def row_spec(spec: Any) -> LeafSpec:
    """Return the spec of one row of arrays that conform to a spec."""
    if spec.shape is None:
        return spec  # type: ignore[no-any-return]
    if not spec.shape:
        raise ValueError(f"unbatch cuts elements into rows, and a component is a scalar: {spec!r}")
    if isinstance(spec, DatasetSpec):
        return DatasetSpec(spec.element_spec, spec.shape[1:])
    return TensorSpec(spec.shape[1:], spec.dtype)


def common_spec(specs: Sequence[Nest]) -> Nest:
    """Return the most specific nest of specs that all the given ones conform to; sizes that differ are unknown."""
    return reduce(_common_nest, specs)


def _common_nest(one: Nest, other: Nest) -> Nest:
    leaves, shape = flatten(one)
    others, other_shape = flatten(other)
    if shape != other_shape or not all(map(_same_kind, leaves, others)):
        raise TypeError(
            f"incompatible elements of datasets: {one!r} and {other!r}. Structures and dtypes must be the same; "
            "convert them in a map."
        )
    return unflatten(shape, map(_common, leaves, others))


def _same_kind(one: Any, other: Any) -> bool:
    return type(one) is type(other) and getattr(one, "dtype", None) == getattr(other, "dtype", None)


def _common(one: Any, other: Any) -> Any:
    if isinstance(one, DatasetSpec):
        if len(one.shape) != len(other.shape):
            raise TypeError(f"incompatible elements of datasets: {one!r} and {other!r} differ in rank")
        return DatasetSpec(_common_nest(one.element_spec, other.element_spec), _common_sizes(one.shape, other.shape))
    if isinstance(one, OptionalSpec):
        return OptionalSpec(_common_nest(one.element_spec, other.element_spec))
    if one == other or not isinstance(one, TensorSpec):
        return one
    if one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return TensorSpec(None, one.dtype)
    return TensorSpec(_common_sizes(one.shape, other.shape), one.dtype)


def _common_sizes(one: Sequence[int | None], other: Sequence[int | None]) -> list[int | None]:
    return [a if a == b else None for a, b in zip(one, other, strict=True)]
