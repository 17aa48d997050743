"""assert_cardinality: a declared number of elements, checked during iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import ElementTransform, InputStream, IterationContext, Stream
from ringlet.errors import FailedPreconditionError


def assert_cardinality(expected_cardinality: int) -> Callable[[Dataset], Dataset]:
    """Declare the number of elements of a dataset of unknown cardinality, such as a filtered dataset.

    Parameters
    ----------
    expected_cardinality : int
        The number of elements, or INFINITE_CARDINALITY.

    Returns
    -------
    callable
        A function for `Dataset.apply`: takes a dataset and returns a dataset with the declared cardinality. Iteration
        raises FailedPreconditionError and ends if the number of elements differs.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> even = Dataset.range(10).filter(lambda x: x % 2 == 0)
    >>> len(even.apply(assert_cardinality(5)))
    5
    """

    def apply_assertion(dataset: Dataset) -> Dataset:
        return type(dataset)(AssertCardinality(dataset.node, expected_cardinality))

    return apply_assertion


@dataclass(frozen=True, eq=False)
class AssertCardinality(ElementTransform):
    """Node that checks the number of elements of its input."""

    expected: int

    @property
    def cardinality(self) -> int:
        return self.expected

    def open_elements(self, context: IterationContext) -> Stream:
        return CheckedElements(self, context)


class CheckedElements(InputStream):
    """Stream that yields the elements of its input, and checks their number."""

    SAVED = ("count",)
    _count = 0

    def __next__(self) -> Nest:
        if self._is_closed:
            raise StopIteration
        try:
            element = next(self._input)
        except StopIteration:
            self.close()
            if self._count == self._node.expected:
                raise
            raise self._difference("only ") from None
        self._count += 1
        if self._count > self._node.expected != INFINITE_CARDINALITY:
            self.close()
            raise self._difference("at least ")
        return element

    def _difference(self, how: str) -> FailedPreconditionError:
        expected = self._node.expected
        wanted = "an infinite number of" if expected == INFINITE_CARDINALITY else expected
        return FailedPreconditionError(
            f"the dataset was expected to contain {wanted} elements but contained {how}{self._count}"
        )
