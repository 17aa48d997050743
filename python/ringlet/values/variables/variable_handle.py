"""VariableReference: a key that stands for a variable."""

from __future__ import annotations

from typing import Any

__all__ = ["VariableReference"]


class VariableReference:
    """What :meth:`Variable.ref` gives: equal and hashable by the identity of the variable. Made by that method.

    Examples
    --------
    >>> import ringlet
    >>> v = ringlet.Variable(1.5)
    >>> {v.ref(): "rate"}[v.ref()], v.ref().deref() is v
    ('rate', True)
    """

    __slots__ = ("_variable",)

    def __init__(self, variable: Any) -> None:
        self._variable = variable

    def deref(self) -> Any:
        """Give the variable."""
        return self._variable

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VariableReference) and other._variable is self._variable

    def __hash__(self) -> int:
        return id(self._variable)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._variable!r}>"
