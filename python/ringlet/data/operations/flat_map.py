"""Dataset.flat_map: the concatenated datasets that a function returns."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import ElementTransform, IterationContext, Node, Stream
from ringlet.data.graph.spec_inference import common_spec, doubled, without_sizes
from ringlet.data.operations.common.nested_elements import DatasetFunction, NestedElements
from ringlet.data.operations.common.user_function import check_callable
from ringlet.data.operations.map import call
from ringlet.nest import flatten


def flat_map(self: Dataset, map_func: Callable[..., Dataset], name: str | None = None) -> Dataset:
    """Concatenate the datasets ``map_func(element)`` of all elements.

    Parameters
    ----------
    map_func : callable
        Takes an element, unpacked into arguments if it is a tuple. Returns a Dataset.
    name : str, unused

    Returns
    -------
    Dataset
        Its cardinality is unknown. Its `element_spec` is inferred by calling `map_func` on an example.

    Raises
    ------
    TypeError
        If `map_func` is not callable; during iteration, if `map_func` does not return a dataset.

    Notes
    -----
    An exception of `map_func` is raised when the next element is requested, with the element number in a note.
    Iteration can continue after the exception.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.range(4).flat_map(Dataset.range)]
    [0, 0, 1, 0, 1, 2]
    """
    check_callable(map_func, "flat_map", "a function that returns a dataset for an element")
    return type(self)(FlatMap(self.node, map_func))


@dataclass(frozen=True, eq=False)
class FlatMap(ElementTransform):
    """Node that concatenates the datasets ``function(element)``."""

    function: Callable[..., Dataset]
    parameter: ClassVar[str] = "map_func"

    runs_user_code = True

    @property
    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY

    @cached_property
    def inner_example(self) -> Node:
        """The dataset that the function returns for the example of the input."""
        return self._inner(self.input.example)

    def _inner(self, example: Nest) -> Node:
        return DatasetFunction(self.function, self.parameter).node(call(self.function, example))

    @cached_property
    def element_spec(self) -> Nest:
        """The common specs of the inner datasets; sizes that depend on unknown sizes of the input are unknown."""
        spec = self._common_spec()
        outer = self.input.element_spec
        if all(leaf.is_fully_defined for leaf in flatten(outer)[0]):
            return spec
        try:
            return common_spec([spec, self._inner(doubled(self.input.example, outer)).element_spec])
        except Exception:
            # The function rejects the doubled sizes, so it is unknown which result sizes depend on the input.
            return without_sizes(spec)

    def _common_spec(self) -> Nest:
        spec = self.inner_example.element_spec
        for example in self.input.examples[1:]:
            with suppress(Exception):  # the error occurs again when the element is computed
                spec = common_spec([spec, self._inner(example).element_spec])
        return spec

    @property
    def example(self) -> Nest:
        return self.inner_example.example

    def open_elements(self, context: IterationContext) -> Stream:
        return NestedElements(self, context, DatasetFunction(self.function, self.parameter))
