"""Empty parts: arrays without rows for replicas without data in a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.data.graph.batch_rows import empty_like_spec
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node
from ringlet.data.graph.spec_inference import known_spec
from ringlet.data.tensor_spec import NoneTensorSpec
from ringlet.nest import map_structure


def empty_part(node: Node, present: Nest) -> Nest:
    """Return an element with zero rows; other unknown dimensions also become zero.

    `present` is an element of another replica. Empty arrays of other libraries are slices of arrays of `present`; if
    the specs are unknown, this applies to all empty arrays.
    """
    specs = known_spec(node)
    if specs is None:
        return map_structure(_without_rows, present)
    if present is None:
        return map_structure(_no_rows, specs)
    try:
        return map_structure(_like, specs, present)
    except ValueError:  # the structures differ: regrouping the step raises the error
        return map_structure(_no_rows, specs)


def _like(spec: Any, leaf: Any) -> Any:
    is_foreign = hasattr(leaf, "shape") and not isinstance(leaf, (np.ndarray, np.generic))
    return _without_rows(leaf) if is_foreign else _no_rows(spec)


def _without_rows(leaf: Any) -> Any:
    return leaf[:0] if getattr(leaf, "shape", ()) else leaf


def _no_rows(spec: Any) -> Any:
    if isinstance(spec, NoneTensorSpec) or spec.shape:
        return empty_like_spec(spec)
    return b"" if spec.dtype == object else spec.dtype.type(0)
