"""Dataset.filter: the elements for which a predicate is true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import ElementTransform, InputStream, IterationContext, Stream
from ringlet.data.operations.common.user_function import UserFunction, as_bool, check_callable, spread


def filter(self: Dataset, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
    """Keep the elements for which ``predicate(element)`` is true.

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

    Notes
    -----
    An exception of `predicate` is raised when the next element is requested, with the element number in a note.
    Iteration can continue after the exception.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.range(6).filter(lambda x: x % 2 == 1)]
    [1, 3, 5]
    """
    check_callable(predicate, "filter")
    return type(self)(Filter(self.node, predicate))


@dataclass(frozen=True, eq=False)
class Filter(ElementTransform):
    """Node that keeps the elements for which a predicate is true."""

    predicate: Callable[..., Any]

    cardinality = UNKNOWN_CARDINALITY
    runs_user_code = True

    def open_elements(self, context: IterationContext) -> Stream:
        return FilterElements(self, context)


class PredicateStream(InputStream):
    """Base class of streams that apply a predicate to the elements of their input."""

    SAVED = ("count",)
    _count = 0

    def __init__(self, node: Filter, context: IterationContext) -> None:
        super().__init__(node, context)
        self._predicate = UserFunction(node.predicate, "predicate")

    def _passes(self, element: Nest) -> bool:
        number = self._count
        self._count += 1
        answer = self._predicate(number, *spread(element))
        if answer is True or answer is False:
            return bool(answer)
        return as_bool(answer, self._predicate.where("did not return a bool", number) + ":")


class FilterElements(PredicateStream):
    """Stream of the elements of its input for which the predicate is true."""

    def __next__(self) -> Nest:
        while True:
            element = next(self._input)
            if self._passes(element):
                return element
