"""ElementTransform: base class of transformations whose elements are not rows of a table."""

from __future__ import annotations

from dataclasses import dataclass

from ringlet.data.graph.node import Transformation

__all__ = ["ElementTransform"]


@dataclass(frozen=True, eq=False)
class ElementTransform(Transformation):
    """Base class of transformations that read their input element by element."""

    @property
    def table(self) -> None:
        return

    @property
    def in_order(self) -> bool:
        return False
