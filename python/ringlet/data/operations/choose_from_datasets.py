"""choose_from_datasets: elements of several datasets, in the order given by a dataset of choices."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, Node, State, Stream
from ringlet.data.graph.spec_inference import check_compatible, common_spec
from ringlet.data.operations.common.user_function import node_of
from ringlet.data.operations.zip import InputStreams
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import InvalidArgumentError


def choose_from_datasets(
    datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = True, name: str | None = None
) -> Dataset:
    """Take each element from one of several datasets, as chosen by another dataset.

    Parameters
    ----------
    datasets : sequence of Dataset
        Datasets with elements of the same structure and dtypes.
    choice_dataset : Dataset
        A dataset of int64: positions in `datasets`.
    stop_on_empty_dataset : bool, default True
        Whether to end when a chosen dataset is exhausted; otherwise, the choice is skipped.
    name : str, unused

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If `datasets` is empty.
    TypeError
        If one of `datasets` is not a Dataset, their elements differ in structure or dtype, or choices are not int64.
    InvalidArgumentError
        During iteration, if a choice is out of range.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> datasets = [Dataset.range(3), Dataset.range(10, 13)]
    >>> [int(x) for x in Dataset.choose_from_datasets(datasets, Dataset.from_tensor_slices([0, 1, 1, 0]))]
    [0, 10, 11, 1]
    """
    nodes = nodes_of(datasets)
    choice = node_of(choice_dataset)
    if choice is None:
        raise TypeError(f"choice_dataset must be a Dataset, got {choice_dataset!r}")
    if not choice.runs_user_code and choice.element_spec != TensorSpec((), np.int64):
        raise TypeError(f"choice_dataset must have scalar int64 elements, got {choice.element_spec!r}")
    return type(datasets[0])(Choose(choice, nodes, bool(stop_on_empty_dataset)))


def nodes_of(datasets: Sequence[Dataset]) -> tuple[Node, ...]:
    """Return the last node of each dataset; raise an error if there is none, or elements are incompatible."""
    found = [node_of(dataset) for dataset in datasets]
    if not found:
        raise ValueError("datasets must not be empty. Pass at least one dataset.")
    nodes = tuple(node for node in found if node is not None)
    if len(nodes) < len(found):
        raise TypeError(f"datasets must be a sequence of Dataset, got {datasets!r}")
    check_compatible(nodes)
    return nodes


@dataclass(frozen=True, eq=False)
class Choose(Node):
    """Node that takes each element from the input selected by `choice`."""

    choice: Node
    parts: tuple[Node, ...]
    stops: bool

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.choice, *self.parts)

    def with_inputs(self, *inputs: Node) -> Choose:
        return dataclasses.replace(self, choice=inputs[0], parts=inputs[1:])

    @property
    def cardinality(self) -> int:
        """INFINITE_CARDINALITY if all inputs are infinite, else UNKNOWN_CARDINALITY."""
        if self.choice.cardinality != INFINITE_CARDINALITY:
            return UNKNOWN_CARDINALITY
        endless = [part.cardinality == INFINITE_CARDINALITY for part in self.parts]
        return INFINITE_CARDINALITY if all(endless) else UNKNOWN_CARDINALITY

    @cached_property
    def element_spec(self) -> Nest:
        return common_spec([part.element_spec for part in self.parts])

    @property
    def example(self) -> Nest:
        return self.parts[0].example

    def open_elements(self, context: IterationContext) -> Stream:
        return ChooseElements([node.open(context) for node in self.inputs], self.stops)


class ChooseElements(InputStreams):
    """Stream of elements of several inputs; the first yields, for each element, the index of one of the others."""

    def __init__(self, sources: Sequence[Stream], stops: bool) -> None:
        super().__init__(sources)
        self._stops = stops
        self._is_over = [False] * (len(self._inputs) - 1)

    def __next__(self) -> Nest:
        choices, *parts = self._inputs
        while not self._is_closed and not all(self._is_over):
            choice = next(choices, None)
            if choice is None:
                break
            at = _position(choice, len(parts))
            if self._is_over[at]:
                continue
            try:
                return next(parts[at])
            except StopIteration:
                self._is_over[at] = True
                if self._stops:
                    break
        self.close()
        raise StopIteration

    def get_state(self) -> State:
        return {**super().get_state(), "is_over": list(self._is_over)}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._is_over = list(state["is_over"])


def _position(choice: Any, count: int) -> int:
    at = int(choice)
    if not 0 <= at < count:
        raise InvalidArgumentError(f"choice_dataset yielded {at}, but the indices of datasets are 0 to {count - 1}")
    return at
