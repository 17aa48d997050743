"""Source node of given elements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, Node, State, Stream
from ringlet.data.graph.spec_inference import common_spec, spec_of
from ringlet.nest import map_structure

__all__ = ["Elements"]


@dataclass(frozen=True, eq=False)
class Elements(Node):
    """The elements of a tuple, at least one, such as those of a window."""

    elements: tuple[Nest, ...] = field(repr=False)
    # The specs of such elements; those that all given elements conform to, if None.
    spec: Nest = field(default=None, repr=False)

    @property
    def cardinality(self) -> int:
        return len(self.elements)

    @property
    def element_spec(self) -> Nest:
        if self.spec is not None:
            return self.spec
        return common_spec([map_structure(spec_of, element) for element in self.elements])

    @property
    def settings(self) -> dict[str, Any]:
        return {"elements": len(self.elements)}

    @property
    def example(self) -> Nest:
        return self.elements[0]

    def open_elements(self, context: IterationContext) -> Stream:
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
        self._next = len(self._elements)

    def get_state(self) -> State:
        return {"next": self._next}

    def set_state(self, state: State) -> None:
        self._next = state["next"]
