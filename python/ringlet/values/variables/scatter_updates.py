"""Row updates of variables with IndexedSlices."""

from __future__ import annotations

from typing import Any


class ScatterUpdates:
    """Mixin of variables: updates of the rows at the indices of an :class:`~ringlet.IndexedSlices`.

    Examples
    --------
    >>> import ringlet
    >>> v = ringlet.Variable([1.0, 2.0, 3.0])
    >>> v.scatter_add(ringlet.IndexedSlices([10.0], [2])).numpy().tolist()
    [1.0, 2.0, 13.0]
    """

    __slots__ = ()

    def _scatter(self, name: str, sparse_delta: Any) -> Any:
        """Apply the update with this name, such as ``"scatter_add"``."""
        raise NotImplementedError(f"{type(self).__name__} does not define _scatter()")

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Add the values of an IndexedSlices to the rows at its indices; results as for :meth:`assign`."""
        return self._scatter("scatter_add", sparse_delta)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtract the values of an IndexedSlices from the rows at its indices."""
        return self._scatter("scatter_sub", sparse_delta)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiply the rows at the indices of an IndexedSlices by its values."""
        return self._scatter("scatter_mul", sparse_delta)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Divide the rows at the indices of an IndexedSlices by its values; integer division truncates toward zero."""
        return self._scatter("scatter_div", sparse_delta)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace the rows at the indices of an IndexedSlices by the elementwise minimum with its values."""
        return self._scatter("scatter_min", sparse_delta)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace the rows at the indices of an IndexedSlices by the elementwise maximum with its values."""
        return self._scatter("scatter_max", sparse_delta)

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Replace the rows at the indices of an IndexedSlices by its values."""
        return self._scatter("scatter_update", sparse_delta)
