"""An element that may be missing."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ringlet.data.graph.element_structure import Nest, as_element
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.nest import map_structure

__all__ = ["Optional"]

T = TypeVar("T")


class Optional(Generic[T]):
    """A value, or nothing (``tf.experimental.Optional``); iterators give one instead of raising at their end.

    Parameters
    ----------
    *value : object
        The value; nothing for none.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> iterator = iter(Dataset.range(1))
    >>> first, second = iterator.get_next_as_optional(), iterator.get_next_as_optional()
    >>> first.has_value(), first.get_value(), second.has_value()
    (True, np.int64(0), False)
    """

    __slots__ = ("_spec", "_value")

    def __init__(self, *value: T) -> None:
        if len(value) > 1:
            raise TypeError(f"an Optional holds one value or none, got {len(value)}")
        self._value = value
        self._spec: Nest = None

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
        """Return an Optional without a value, for elements of these specs.

        Examples
        --------
        >>> Optional.empty(TensorSpec([2], "int32")).element_spec
        TensorSpec(shape=(2,), dtype=int32)
        """
        empty = cls()
        empty._spec = element_spec
        return empty

    def has_value(self) -> bool:
        """Tell whether there is a value.

        Examples
        --------
        >>> Optional().has_value()
        False
        """
        return bool(self._value)

    def get_value(self) -> T:
        """Give the value.

        Raises
        ------
        InvalidArgumentError
            If there is none.

        Examples
        --------
        >>> Optional("x").get_value()
        'x'
        """
        if not self._value:
            raise InvalidArgumentError(
                "this Optional has no value: the iterator was at its end. Ask has_value() first."
            )
        return self._value[0]

    @property
    def element_spec(self) -> Nest:
        """The nest of TensorSpec of the value.

        Raises
        ------
        InvalidArgumentError
            If there is none, and no specs were given.
        """
        if not self._value and self._spec is not None:
            return self._spec
        return map_structure(TensorSpec.from_array, self.get_value())

    def __repr__(self) -> str:
        return f"Optional({self._value[0]!r})" if self._value else "Optional()"
