"""Base class of distributed values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from ringlet import context
from ringlet.collectives.argument_parsing import shortened

T_co = TypeVar("T_co", covariant=True)


class DistributedValues(Generic[T_co]):
    """A value with one component per replica (``tf.distribute.DistributedValues``); immutable.

    Base class of :class:`~ringlet.values.PerReplica` and :class:`~ringlet.values.Mirrored`.

    Parameters
    ----------
    values : iterable
        One component for each replica of this process, in replica order; at least one. Components are not copied.

    Raises
    ------
    ValueError
        If there is no component.
    TypeError
        If `values` is not iterable, or is text or a mapping, whose characters or keys would become components.

    Examples
    --------
    >>> value = DistributedValues(["a", "b"])
    >>> value
    DistributedValues:{
      0: 'a',
      1: 'b'
    }
    >>> print(value)
    DistributedValues:{
      0: a,
      1: b
    }
    """

    __slots__ = ("__weakref__", "_values")

    _values: tuple[T_co, ...]

    def __init__(self, values: Iterable[T_co]) -> None:
        is_list = isinstance(values, (tuple, list))
        if not is_list and (isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable)):
            raise TypeError(
                f"a {type(self).__name__} takes a list with the component of each replica, got "
                f"{shortened(values)} of type "
                f"{type(values).__name__}: write {type(self).__name__}([first, second]), in replica order"
            )
        self._values = tuple(values)
        if not self._values:
            raise ValueError(
                f"a {type(self).__name__} requires the component of at least one replica, got an empty list"
            )

    @property
    def values(self) -> tuple[T_co, ...]:
        """The components, in replica order."""
        return self._values

    def component(self, local_replica_id: int) -> Any:
        """Return the value that one replica receives as an argument.

        Parameters
        ----------
        local_replica_id : int
            Position among the replicas of this process.

        Returns
        -------
        object
            The component of that replica; the object itself for subclasses that replicas use as a whole.

        Examples
        --------
        >>> DistributedValues(["a", "b"]).component(1)
        'b'
        """
        return self._values[local_replica_id]

    def __repr__(self) -> str:
        return self._table(repr)

    def __str__(self) -> str:
        return self._table(str)

    def _repr_html_(self) -> str:
        from ringlet.values.notebook_repr import title_of, values_table

        return values_table(title_of(self, len(self._values)), self._values)

    def _table(self, text: Any) -> str:
        rows = ",\n".join(f"  {i}: {text(value)}" for i, value in enumerate(self._values))
        return f"{type(self).__name__}:{{\n{rows}\n}}"

    def _of_current_replica(self) -> tuple[T_co, ...]:
        """Return the current replica's component in a 1-tuple; an empty tuple if there is none."""
        mode = context.current()
        if mode is None or mode.local_replica_id is None or mode.local_replica_id >= len(self._values):
            return ()
        return (self._values[mode.local_replica_id],)
