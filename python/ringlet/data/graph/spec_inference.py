"""Inference of specs from values and from results of functions, and their most specific common spec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import in_kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.dataset_spec import DatasetSpec, OptionalSpec
from ringlet.data.graph.element_structure import Nest, has_datasets, is_dataset, is_optional
from ringlet.data.tensor_spec import NoneTensorSpec, TensorSpec
from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.nest import flatten, map_structure, unflatten

if TYPE_CHECKING:
    from ringlet.data.graph.node import Node

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


def known_spec(node: Node) -> Nest | None:
    """Return the specs of a dataset; None if they are unknown before the dataset is read."""
    try:
        return node.element_spec
    except FailedPreconditionError:
        return None
    except InvalidArgumentError:
        if node.cardinality == 0:  # the iterable is an empty list
            return None
        raise


def row_spec(spec: Any) -> LeafSpec:
    """Return the spec of one row of arrays that conform to a spec."""
    if spec.shape is None:
        return spec  # type: ignore[no-any-return]
    if not spec.shape:
        raise ValueError(f"unbatch splits elements into rows, but a component is a scalar: {spec!r}")
    if isinstance(spec, DatasetSpec):
        return DatasetSpec(spec.element_spec, spec.shape[1:])
    return TensorSpec(spec.shape[1:], spec.dtype)


def common_spec(specs: Sequence[Nest]) -> Nest:
    """Return the most specific nest of specs that all given specs conform to; sizes that differ are unknown."""
    return reduce(_common_nest, specs)


def _common_nest(one: Nest, other: Nest) -> Nest:
    leaves, shape = flatten(one)
    others, other_shape = flatten(other)
    if shape != other_shape or not all(map(_same_kind, leaves, others)):
        raise TypeError(
            f"incompatible elements of datasets: {one!r} and {other!r}. Structures and dtypes must be equal. Convert "
            "the elements in a map."
        )
    return unflatten(shape, map(_common, leaves, others))


def _same_kind(one: Any, other: Any) -> bool:
    are_text = {one.dtype.kind, other.dtype.kind} <= set("OUS")  # in object arrays, text of Python
    return type(one) is type(other) and (one.dtype == other.dtype or are_text)


def _common(one: Any, other: Any) -> Any:
    if isinstance(one, DatasetSpec):
        if len(one.shape) != len(other.shape):
            raise TypeError(
                f"incompatible elements of datasets: {one!r} and {other!r} must have the same number of dimensions"
            )
        return DatasetSpec(_common_nest(one.element_spec, other.element_spec), _common_sizes(one.shape, other.shape))
    if isinstance(one, OptionalSpec):
        return OptionalSpec(_common_nest(one.element_spec, other.element_spec))
    if one == other or not isinstance(one, TensorSpec):
        return one
    dtype = one.dtype if one.dtype == other.dtype else object
    if one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return TensorSpec(None, dtype)
    return TensorSpec(_common_sizes(one.shape, other.shape), dtype)


def _common_sizes(one: Sequence[int | None], other: Sequence[int | None]) -> list[int | None]:
    return [a if a == b else None for a, b in zip(one, other, strict=True)]


def check_compatible(nodes: Sequence[Node]) -> None:
    """Check that the elements of nodes are compatible; nodes that run user code are not checked."""
    known = [node for node in nodes if not node.runs_user_code]
    if known:
        common_spec([node.element_spec for node in known])


def doubled(example: Nest, specs: Nest) -> Nest:
    """Return an example, doubled along the dimensions whose sizes are unknown in `specs`.

    Arrays of an unknown number of dimensions are doubled along a new dimension.
    """
    return map_structure(_doubled_leaf, example, specs)


def _doubled_leaf(leaf: Any, spec: Any) -> Any:
    if isinstance(spec, TensorSpec) and spec.shape is None:
        return in_kind_of(leaf, np.stack([as_ndarray(leaf)] * 2), is_own=True)
    for axis, size in enumerate(spec.shape or ()):
        if size is None:
            leaf = in_kind_of(leaf, np.concatenate([as_ndarray(leaf)] * 2, axis), is_own=True)
    return leaf


def spec_of_answers(answers: Sequence[Nest], source: Node, function: Callable[[Nest], Nest]) -> Nest:
    """Return the specs of a function's results; `answers` are its results for examples of the elements of `source`.

    If the specs of `source` have unknown sizes, the function is also called on a `doubled` example; if that fails, all
    sizes are unknown.
    """
    specs = [map_structure(spec_of, answer) for answer in answers]
    known = source.element_spec
    try:
        if not all(spec.is_fully_defined for spec in flatten(known)[0]):
            larger = function(doubled(source.example, known))
            specs.append(map_structure(spec_of, larger))
        return common_spec(specs)
    except Exception:
        # The function rejects the doubled sizes, so it is unknown which result sizes depend on the input.
        return without_sizes(specs[0])


def without_sizes(specs: Nest) -> Nest:
    """Return the specs with all sizes of arrays unknown."""
    return map_structure(_without_sizes, specs)


def _without_sizes(spec: Any) -> Any:
    if not isinstance(spec, TensorSpec) or spec.shape is None:
        return spec
    return TensorSpec([None] * len(spec.shape), spec.dtype)
