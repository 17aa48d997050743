"""Optional: a value that may be absent."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ringlet.data.graph.element_structure import Nest, as_element, detached
from ringlet.errors import InvalidArgumentError
from ringlet.nest import map_structure
from ringlet.values import PerReplica

T = TypeVar("T")


class Optional(Generic[T]):
    """A value that may be absent (``tf.experimental.Optional``), such as the next element of an iterator.

    Parameters
    ----------
    *value : object
        The value; omitted for an empty Optional.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> iterator = iter(Dataset.range(1))
    >>> first, second = iterator.get_next_as_optional(), iterator.get_next_as_optional()
    >>> first.has_value(), first.get_value(), second.has_value()
    (True, np.int64(0), False)
    """

    __slots__ = ("_source", "_spec", "_value")

    def __init__(self, *value: T) -> None:
        if len(value) > 1:
            raise TypeError(f"Optional takes at most one value, got {len(value)}")
        self._value = value
        self._spec: Nest = None
        self._source: Any = None

    @classmethod
    def from_value(cls, value: Nest) -> Optional[Any]:
        """Return an Optional that holds an element.

        Examples
        --------
        >>> Optional.from_value((1, "a")).get_value()
        (np.int64(1), 'a')
        """
        return cls(as_element(value))

    @classmethod
    def empty(cls, element_spec: Nest) -> Optional[Any]:
        """Return an empty Optional with the given specs.

        Examples
        --------
        >>> from ringlet.data import TensorSpec
        >>> Optional.empty(TensorSpec([2], "int32")).element_spec
        TensorSpec(shape=(2,), dtype=int32)
        """
        empty = cls()
        empty._spec = element_spec
        return empty

    @classmethod
    def at_end(cls, source: Any) -> Optional[Any]:
        """Return an empty Optional with the `element_spec` of a dataset.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> Optional.at_end(Dataset.range(3)).element_spec
        TensorSpec(shape=(), dtype=int64)
        """
        empty = cls()
        empty._source = source  # read on demand: inferring its specs may call user functions
        return empty

    def has_value(self, name: str | None = None) -> bool:
        """Return whether the value is present; `name` is unused, as in TensorFlow.

        Examples
        --------
        >>> Optional().has_value()
        False
        """
        return bool(self._value)

    def get_value(self, name: str | None = None) -> T:
        """Return the value; `name` is unused, as in TensorFlow.

        Raises
        ------
        InvalidArgumentError
            If the value is absent.

        Examples
        --------
        >>> Optional("x").get_value()
        'x'
        """
        if not self._value:
            raise InvalidArgumentError("this Optional has no value. Check has_value() first.")
        return self._value[0]

    @property
    def element_spec(self) -> Nest:
        """The specs of the value, a nest of TensorSpec.

        Raises
        ------
        InvalidArgumentError
            If the value is absent and no specs were given.
        """
        if not self._value and self._source is not None:
            return self._source.element_spec
        if not self._value and self._spec is not None:
            return self._spec
        return map_structure(_spec_of, self.get_value())

    def of_arrays(self) -> Optional[Any]:
        """Return an Optional whose value is converted to read-only arrays, as an element of a dataset requires.

        Examples
        --------
        >>> Optional([1, 2]).of_arrays()
        Optional(array([1, 2]))
        """
        return Optional(detached(as_element(self._value[0]))) if self._value else Optional.empty(self.element_spec)

    def __repr__(self) -> str:
        return f"Optional({self._value[0]!r})" if self._value else "Optional()"


def _spec_of(leaf: Any) -> Any:
    from ringlet.data.graph.spec_inference import spec_of
    from ringlet.data.tensor_spec import PerReplicaSpec

    return PerReplicaSpec(*map(spec_of, leaf.values)) if isinstance(leaf, PerReplica) else spec_of(leaf)
