"""What the elements of several datasets have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import in_kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node
from ringlet.data.tensor_spec import TensorSpec
from ringlet.nest import flatten, map_structure, unflatten

__all__ = ["check_compatible", "common_spec", "doubled", "spec_of_answers", "without_sizes"]


def check_compatible(nodes: Sequence[Node]) -> None:
    """Compare the elements of nodes, where that takes no call of a user's function.

    Raises
    ------
    TypeError
        If they differ in structure or dtype.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> check_compatible([Dataset.range(3).node, Dataset.range(5).node])
    """
    known = [node for node in nodes if not node.runs_user_code]
    if known:
        common_spec([node.element_spec for node in known])


def common_spec(specs: Sequence[Nest]) -> Nest:
    """Give the nest of specs that elements of all these kinds follow; sizes that differ are unknown.

    Raises
    ------
    TypeError
        If they differ in structure or dtype.

    Examples
    --------
    >>> common_spec([TensorSpec([2, 3], np.int64), TensorSpec([2, 4], np.int64)])
    TensorSpec(shape=(2, None), dtype=int64)
    """
    return reduce(_common_nest, specs)


def doubled(example: Nest, specs: Nest) -> Nest:
    """Give an example whose sizes are twice as large where specs do not know them.

    Examples
    --------
    >>> doubled(np.array([1, 2]), TensorSpec([None], np.int64))
    array([1, 2, 1, 2])
    """
    return map_structure(_doubled_leaf, example, specs)


def _doubled_leaf(leaf: Any, spec: Any) -> Any:
    for axis, size in enumerate(spec.shape or ()):
        if size is None:
            leaf = in_kind_of(leaf, np.concatenate([as_ndarray(leaf)] * 2, axis), is_own=True)
    return leaf


def spec_of_answers(answers: Sequence[Nest], source: Node, function: Callable[[Nest], Nest]) -> Nest:
    """Give the specs of what a function makes of the elements of a node.

    Parameters
    ----------
    answers : sequence of nest
        What it made of examples.
    source : Node
        Where it does not know all sizes of its elements, the function is also called on an example of double size.
    function : callable
        Of an element.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> spec_of_answers([np.zeros((2, 3))], Dataset.range(5).batch(2).node, lambda x: np.zeros((len(x), 3)))
    TensorSpec(shape=(None, 3), dtype=float64)
    """
    specs = [map_structure(TensorSpec.from_array, answer) for answer in answers]
    known = source.element_spec
    try:
        if not all(spec.is_fully_defined for spec in flatten(known)[0]):
            larger = function(doubled(source.example, known))
            specs.append(map_structure(TensorSpec.from_array, larger))
        return common_spec(specs)
    except Exception:
        # A function that takes no other size tells nothing about which of its sizes depend on it.
        return without_sizes(specs[0])


def without_sizes(specs: Nest) -> Nest:
    """Give the same specs with all sizes unknown.

    Examples
    --------
    >>> without_sizes(TensorSpec([2, 3], np.int64))
    TensorSpec(shape=(None, None), dtype=int64)
    """
    return map_structure(_without_sizes, specs)


def _without_sizes(spec: Any) -> Any:
    if not isinstance(spec, TensorSpec) or spec.shape is None:
        return spec
    return TensorSpec([None] * len(spec.shape), spec.dtype)


def _common_nest(one: Nest, other: Nest) -> Nest:
    leaves, shape = flatten(one)
    others, other_shape = flatten(other)
    if shape != other_shape or not all(map(_same_kind, leaves, others)):
        raise TypeError(
            f"incompatible elements of datasets: {one!r} and {other!r}. Structures and dtypes must be the same; "
            "a map makes them so."
        )
    return unflatten(shape, map(_common, leaves, others))


def _same_kind(one: Any, other: Any) -> bool:
    return type(one) is type(other) and getattr(one, "dtype", None) == getattr(other, "dtype", None)


def _common(one: Any, other: Any) -> Any:
    if one == other or not isinstance(one, TensorSpec):
        return one
    if one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return TensorSpec(None, one.dtype)
    return TensorSpec([a if a == b else None for a, b in zip(one.shape, other.shape, strict=True)], one.dtype)
