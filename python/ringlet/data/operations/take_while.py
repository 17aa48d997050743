"""The elements in front of the first that a predicate stops at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Run, Stream
from ringlet.data.operations.filter import Filter, Tested
from ringlet.data.operations.user_function import check_callable

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["TakeWhile", "take_while"]


def take_while(self: Dataset, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
    """Keep elements up to the first for which ``predicate(element)`` is false, without that one.

    Parameters
    ----------
    predicate : callable
        Takes an element; one that is a tuple comes as several arguments. Gives True or False, Python's or NumPy's.
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

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.range(6).take_while(lambda x: x < 2)]
    [0, 1]
    """
    check_callable(predicate, "take_while")
    return type(self)(TakeWhile(self.node, predicate))


@dataclass(frozen=True, eq=False)
class TakeWhile(Filter):
    """The elements in front of the first for which a predicate is false."""

    def open_elements(self, run: Run) -> Stream:
        """Start a run."""
        return TakeWhileElements(self.input.open(run), self.predicate)


class TakeWhileElements(Tested):
    """The elements of another stream, which is closed behind the last that passes."""

    __slots__ = ()

    def __next__(self) -> Nest:
        if self._is_closed:
            raise StopIteration
        element = next(self._input)
        if self._passes(element):
            return element
        self.close()
        raise StopIteration
