"""The base of transformations whose elements are no rows of a table."""

from __future__ import annotations

from dataclasses import dataclass

from ringlet.data.graph.node import Transformation

__all__ = ["Rowless"]


@dataclass(frozen=True, eq=False)
class Rowless(Transformation):
    """A transformation that gives elements one by one, whatever its input gives."""

    @property
    def table(self) -> None:
        """None: the elements are no rows."""
        return

    @property
    def in_order(self) -> bool:
        """Means nothing without a table."""
        return False
