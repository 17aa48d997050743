"""Dataset.take_while: the elements before the first element for which a predicate is false."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, Stream
from ringlet.data.operations.common.user_function import check_callable
from ringlet.data.operations.filter import Filter, PredicateStream


def take_while(self: Dataset, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
    """Keep the elements before the first element for which ``predicate(element)`` is false.

    Parameters
    ----------
    predicate : callable
        Takes an element, unpacked into arguments if it is a tuple. Returns True, False or an array of one bool.
    name : str, unused

    Returns
    -------
    Dataset
        Its cardinality is unknown.

    Raises
    ------
    TypeError
        If `predicate` is not callable.
    InvalidArgumentError
        During iteration, if `predicate` does not return one bool.

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
    """Node that yields the elements before the first element for which a predicate is false."""

    def open_elements(self, context: IterationContext) -> Stream:
        return TakeWhileElements(self, context)


class TakeWhileElements(PredicateStream):
    """Stream of elements; the input is closed at the first element for which the predicate is false."""

    def __next__(self) -> Nest:
        if self._is_closed:
            raise StopIteration
        element = next(self._input)
        if self._passes(element):
            return element
        self.close()
        raise StopIteration
