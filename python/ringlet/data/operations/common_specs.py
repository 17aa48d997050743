"""Common specs of the elements of several datasets, and of function results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import in_kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node
from ringlet.data.graph.spec_inference import common_spec, spec_of
from ringlet.data.tensor_spec import TensorSpec
from ringlet.nest import flatten, map_structure

__all__ = ["check_compatible", "doubled", "spec_of_answers", "without_sizes"]


def check_compatible(nodes: Sequence[Node]) -> None:
    """Check that elements of nodes are compatible, unless that requires calls of user functions."""
    known = [node for node in nodes if not node.runs_user_code]
    if known:
        common_spec([node.element_spec for node in known])


def doubled(example: Nest, specs: Nest) -> Nest:
    """Return an example with unknown sizes doubled."""
    return map_structure(_doubled_leaf, example, specs)


def _doubled_leaf(leaf: Any, spec: Any) -> Any:
    for axis, size in enumerate(spec.shape or ()):
        if size is None:
            leaf = in_kind_of(leaf, np.concatenate([as_ndarray(leaf)] * 2, axis), is_own=True)
    return leaf


def spec_of_answers(answers: Sequence[Nest], source: Node, function: Callable[[Nest], Nest]) -> Nest:
    """Return the specs of the results of a function for the elements of a node.

    If the specs of `source` have unknown sizes, the function is also called on an example of double size.
    """
    specs = [map_structure(spec_of, answer) for answer in answers]
    known = source.element_spec
    try:
        if not all(spec.is_fully_defined for spec in flatten(known)[0]):
            larger = function(doubled(source.example, known))
            specs.append(map_structure(spec_of, larger))
        return common_spec(specs)
    except Exception:
        # If the function rejects the other size, the dependence of result sizes stays undetermined.
        return without_sizes(specs[0])


def without_sizes(specs: Nest) -> Nest:
    """Return the specs with all sizes unknown."""
    return map_structure(_without_sizes, specs)


def _without_sizes(spec: Any) -> Any:
    if not isinstance(spec, TensorSpec) or spec.shape is None:
        return spec
    return TensorSpec([None] * len(spec.shape), spec.dtype)
