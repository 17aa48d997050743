"""The elements of datasets that a function makes, one dataset behind another."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node, Run, Stream
from ringlet.data.operations.common_specs import common_spec, doubled, without_sizes
from ringlet.data.operations.element_transform import Rowless
from ringlet.data.operations.map import call
from ringlet.data.operations.nested_interleave import DatasetFunction, InnerElements
from ringlet.data.operations.user_function import check_callable
from ringlet.nest import flatten

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["FlatMap", "flat_map"]


def flat_map(self: Dataset, map_func: Callable[..., Dataset], name: str | None = None) -> Dataset:
    """Give all elements of the dataset ``map_func(element)``, for every element.

    Parameters
    ----------
    map_func : callable
        Takes an element; one that is a tuple comes as several arguments. Gives a Dataset.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        Only reading tells how many elements it has. Its `element_spec` is found by calling `map_func` on an example.

    Raises
    ------
    TypeError
        If `map_func` cannot be called; during iteration, if it gives something else than a dataset.

    Notes
    -----
    An exception of `map_func` surfaces where the next element is asked for, with the number of the element in a note.
    The iterator can go on behind it.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.range(4).flat_map(Dataset.range)]
    [0, 0, 1, 0, 1, 2]
    """
    check_callable(map_func, "flat_map", "a function that makes a dataset of an element")
    return type(self)(FlatMap(self.node, map_func))


@dataclass(frozen=True, eq=False)
class FlatMap(Rowless):
    """The elements of the datasets that a function makes of elements."""

    function: Callable[..., Dataset]
    parameter: ClassVar[str] = "map_func"

    @property
    def cardinality(self) -> int:
        """Unknown."""
        return UNKNOWN_CARDINALITY

    @property
    def runs_user_code(self) -> bool:
        """Always."""
        return True

    @cached_property
    def inner_example(self) -> Node:
        """The dataset that the function makes of the input's example."""
        return self._inner(self.input.example)

    def _inner(self, example: Nest) -> Node:
        return DatasetFunction(self.function, self.parameter).node(call(self.function, example))

    @cached_property
    def element_spec(self) -> Nest:
        """The specs of the inner dataset; sizes that change with unknown sizes of the input are unknown."""
        spec = self._common_spec()
        outer = self.input.element_spec
        if all(leaf.is_fully_defined for leaf in flatten(outer)[0]):
            return spec
        try:
            return common_spec([spec, self._inner(doubled(self.input.example, outer)).element_spec])
        except Exception:
            # A function that takes no other size tells nothing about which of its sizes depend on it.
            return without_sizes(spec)

    def _common_spec(self) -> Nest:
        spec = self.inner_example.element_spec
        for example in self.input.examples[1:]:
            with suppress(Exception):  # who makes that element tells what is wrong with it
                spec = common_spec([spec, self._inner(example).element_spec])
        return spec

    @property
    def example(self) -> Nest:
        """The example of an inner dataset."""
        return self.inner_example.example

    def open_elements(self, run: Run) -> Stream:
        """Start a run."""
        return InnerElements(self, run, DatasetFunction(self.function, self.parameter))
