"""An element that may be missing."""

from __future__ import annotations

from typing import Generic, TypeVar

from ringlet.data.spec import TensorSpec
from ringlet.data.structure import Nest
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

    __slots__ = ("_value",)

    def __init__(self, *value: T) -> None:
        if len(value) > 1:
            raise TypeError(f"an Optional holds one value or none, got {len(value)}")
        self._value = value

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
            If there is none.
        """
        return map_structure(TensorSpec.from_array, self.get_value())

    def __repr__(self) -> str:
        return f"Optional({self._value[0]!r})" if self._value else "Optional()"
