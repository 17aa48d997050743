"""The changes of single rows that variables have in common."""

from __future__ import annotations

from typing import Any

__all__ = ["Scatters"]


class Scatters:
    """Methods that change the rows which an :class:`~ringlet.IndexedSlices` names, for variables of all kinds.

    Examples
    --------
    >>> import ringlet
    >>> v = ringlet.Variable([1.0, 2.0, 3.0])
    >>> v.scatter_add(ringlet.IndexedSlices([10.0], [2])).numpy().tolist()
    [1.0, 2.0, 13.0]
    """

    __slots__ = ()

    def _scatter(self, name: str, sparse_delta: Any) -> Any:
        """Make the change of a name, such as ``"scatter_add"``."""
        raise NotImplementedError(f"{type(self).__name__} does not say how its rows are changed")

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Add to the rows that an :class:`~ringlet.IndexedSlices` names; results are those of :meth:`assign`."""
        return self._scatter("scatter_add", sparse_delta)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtract from the rows that an IndexedSlices names."""
        return self._scatter("scatter_sub", sparse_delta)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiply the rows that an IndexedSlices names."""
        return self._scatter("scatter_mul", sparse_delta)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Divide the rows that an IndexedSlices names; integers are cut towards zero."""
        return self._scatter("scatter_div", sparse_delta)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Put the lesser of both in the rows that an IndexedSlices names."""
        return self._scatter("scatter_min", sparse_delta)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Put the greater of both in the rows that an IndexedSlices names."""
        return self._scatter("scatter_max", sparse_delta)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Put other values in the rows that an IndexedSlices names."""
        return self._scatter("scatter_update", sparse_delta)
