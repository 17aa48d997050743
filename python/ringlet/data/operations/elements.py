"""A dataset of elements that are there already."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node, Run, State, Stream
from ringlet.data.operations.common_specs import common_spec
from ringlet.data.tensor_spec import TensorSpec
from ringlet.nest import map_structure

__all__ = ["Elements"]


@dataclass(frozen=True, eq=False)
class Elements(Node):
    """The elements of a tuple, at least one, such as those of a window.

    Examples
    --------
    >>> import numpy as np
    >>> list(Elements((np.int64(3), np.int64(4))).open(Run()))
    [np.int64(3), np.int64(4)]
    """

    elements: tuple[Nest, ...] = field(repr=False)
    # What is known of other elements of their kind; what these have in common, if it is None.
    spec: Nest = field(default=None, repr=False)

    @property
    def cardinality(self) -> int:
        """The number of elements."""
        return len(self.elements)

    @property
    def element_spec(self) -> Nest:
        """The specs that all elements follow, unless others were given."""
        if self.spec is not None:
            return self.spec
        return common_spec([map_structure(TensorSpec.from_array, element) for element in self.elements])

    @property
    def settings(self) -> dict[str, Any]:
        """The number of elements."""
        return {"elements": len(self.elements)}

    @property
    def example(self) -> Nest:
        """The first element."""
        return self.elements[0]

    def open_elements(self, run: Run) -> Stream:
        """Start at the first element."""
        return ElementsStream(self.elements)


class ElementsStream(Stream):
    """The elements of a tuple."""

    __slots__ = ("_elements", "_next")

    def __init__(self, elements: tuple[Nest, ...]) -> None:
        self._elements = elements
        self._next = 0

    def __next__(self) -> Nest:
        if self._next == len(self._elements):
            raise StopIteration
        element = self._elements[self._next]
        self._next += 1
        return element

    def close(self) -> None:
        """Give no more."""
        self._next = len(self._elements)

    def get_state(self) -> State:
        """Give the place."""
        return {"next": self._next}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        self._next = state["next"]
