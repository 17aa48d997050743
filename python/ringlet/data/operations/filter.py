"""The elements that a predicate lets through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Downstream, Run, State, Stream
from ringlet.data.operations.element_transform import Rowless
from ringlet.data.operations.user_function import UserFunction, as_bool, check_callable, spread

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["Filter", "Tested", "filter"]


def filter(self: Dataset, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
    """Keep the elements for which ``predicate(element)`` is true.

    Parameters
    ----------
    predicate : callable
        Takes an element; one that is a tuple comes as several arguments. Gives True or False, or an array that is
        one bool.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        Only reading tells how many elements it has.

    Raises
    ------
    TypeError
        If `predicate` cannot be called.
    InvalidArgumentError
        During iteration, if it gives anything but one bool.

    Notes
    -----
    An exception of `predicate` surfaces where the next element is asked for, with the number of the element in a note.
    The iterator can go on behind it.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.range(6).filter(lambda x: x % 2 == 1)]
    [1, 3, 5]
    """
    check_callable(predicate, "filter")
    return type(self)(Filter(self.node, predicate))


@dataclass(frozen=True, eq=False)
class Filter(Rowless):
    """The elements for which a predicate is true."""

    predicate: Callable[..., Any]

    @property
    def cardinality(self) -> int:
        """Unknown."""
        return UNKNOWN_CARDINALITY

    @property
    def runs_user_code(self) -> bool:
        """Always."""
        return True

    def open_elements(self, run: Run) -> Stream:
        """Start a run."""
        return FilterElements(self.input.open(run), self.predicate)


class Tested(Downstream):
    """Elements of another stream, and a predicate for each."""

    __slots__ = ("_count", "_predicate")

    def __init__(self, source: Stream, predicate: Callable[..., Any]) -> None:
        super().__init__(source)
        self._predicate = UserFunction(predicate, "predicate")
        self._count = 0

    def _passes(self, element: Nest) -> bool:
        number = self._count
        self._count += 1
        answer = self._predicate(number, *spread(element))
        if answer is True or answer is False:
            return bool(answer)
        return as_bool(answer, self._predicate.where("gave no bool", number) + ":")

    def get_state(self) -> State:
        """Give how many elements were tested."""
        return {**super().get_state(), "count": self._count}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        super().set_state(state)
        self._count = state["count"]


class FilterElements(Tested):
    """The elements of another stream that pass."""

    __slots__ = ()

    def __next__(self) -> Nest:
        while True:
            element = next(self._input)
            if self._passes(element):
                return element
