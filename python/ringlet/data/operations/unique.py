"""Dataset.unique: elements without duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import ElementTransform, InputStream, IterationContext, State, Stream
from ringlet.data.state.saved_elements import load_elements, save_elements
from ringlet.errors import InvalidArgumentError


def unique(self: Dataset, name: str | None = None) -> Dataset:
    """Drop elements that are equal to an earlier element.

    Parameters
    ----------
    name : str, unused

    Returns
    -------
    Dataset
        Its cardinality is unknown. An iteration stores all unique elements.

    Raises
    ------
    TypeError
        During iteration, if elements are neither integers nor text.
    InvalidArgumentError
        During iteration, if elements have several components.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.from_tensor_slices([3, 1, 3, 1, 2]).unique()]
    [3, 1, 2]
    """
    return type(self)(Unique(self.node))


@dataclass(frozen=True, eq=False)
class Unique(ElementTransform):
    """Node that drops elements equal to an earlier element."""

    cardinality = UNKNOWN_CARDINALITY

    def open_elements(self, context: IterationContext) -> Stream:
        return UniqueElements(self, context)


class UniqueElements(InputStream):
    """Stream of its input without elements equal to an earlier element."""

    def __init__(self, node: Unique, context: IterationContext) -> None:
        super().__init__(node, context)
        self._seen: dict[Any, Nest] = {}

    def __next__(self) -> Nest:
        while True:
            element = next(self._input)
            key = _key(element)
            if key not in self._seen:
                self._seen[key] = element
                return element

    def get_state(self) -> State:
        return {**super().get_state(), "seen": save_elements(list(self._seen.values()))}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._seen = {_key(element): element for element in load_elements(state["seen"], self._node.input)}


def _key(element: Nest) -> Any:
    if isinstance(element, (str, bytes)):
        return str(element) if isinstance(element, str) else bytes(element)
    if kind_of(element) is not None:
        element = as_ndarray(element)
    if not isinstance(element, (np.ndarray, np.generic)):
        raise InvalidArgumentError(f"unique requires elements of one component, got {element!r}")
    if element.dtype.kind in "iu":
        return element.shape, element.tobytes()
    if element.dtype.kind in "OUS":
        return element.shape, tuple(element.ravel().tolist())
    raise TypeError(f"unique requires integers or text, got elements of dtype {element.dtype}")
