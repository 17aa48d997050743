"""What a replica gets in a step for which it has no data: arrays without rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.nest import map_structure

__all__ = ["empty_part", "known_spec"]


def known_spec(node: Node) -> Nest | None:
    """Give the specs of a dataset; None where only reading what can be read once would tell, or nothing would."""
    try:
        return node.element_spec
    except FailedPreconditionError:
        return None
    except InvalidArgumentError:
        if node.cardinality == 0:  # an empty list
            return None
        raise


def empty_part(node: Node, present: Nest) -> Nest:
    """Give an element without rows, and without entries along other dimensions that the specs do not know.

    Parameters
    ----------
    node : Node
        Whose elements they are.
    present : nest, or None
        An element of another replica. Arrays of other libraries are cut from it, and so are all arrays where the specs
        are not known.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> empty_part(Dataset.from_tensor_slices(np.zeros((5, 3))).batch(2).node, None).shape
    (0, 3)
    """
    specs = known_spec(node)
    if specs is None:
        return map_structure(_without_rows, present)
    if present is None:
        return map_structure(_no_rows, specs)
    try:
        return map_structure(_like, specs, present)
    except ValueError:  # of another structure: the steps will say so
        return map_structure(_no_rows, specs)


def _like(spec: TensorSpec, leaf: Any) -> Any:
    is_foreign = hasattr(leaf, "shape") and not isinstance(leaf, (np.ndarray, np.generic))
    return _without_rows(leaf) if is_foreign else _no_rows(spec)


def _without_rows(leaf: Any) -> Any:
    return leaf[:0] if getattr(leaf, "shape", ()) else leaf


def _no_rows(spec: TensorSpec) -> Any:
    if not spec.shape:
        return b"" if spec.dtype == object else spec.dtype.type(0)
    empty = np.zeros([0, *(size or 0 for size in spec.shape[1:])], spec.dtype)
    empty.setflags(write=False)
    return empty
