"""sample_from_datasets: elements of randomly drawn datasets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet.collectives.buffers import as_ndarray
from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Array, Nest
from ringlet.data.graph.node import IterationContext, Node, Stream
from ringlet.data.operations.choose_from_datasets import Choose, nodes_of
from ringlet.data.operations.common.user_function import node_of
from ringlet.data.operations.random import RandomNumbers, seed_entropy
from ringlet.data.operations.zip import InputStreams
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import InvalidArgumentError


def sample_from_datasets(  # noqa: PLR0917 - the arguments are TensorFlow's
    datasets: Sequence[Dataset],
    weights: Any = None,
    seed: int | None = None,
    stop_on_empty_dataset: bool = False,
    rerandomize_each_iteration: bool | None = None,
    name: str | None = None,
) -> Dataset:
    """Take each element from a randomly drawn dataset.

    Parameters
    ----------
    datasets : sequence of Dataset
        Datasets with elements of the same structure and dtypes.
    weights : sequence of float, or Dataset, optional
        Relative frequency of each dataset; equal by default. A weight of zero or less excludes a dataset. If `weights`
        is a Dataset, each element holds the weights of one draw, an array of floats; the result ends when `weights`
        ends.
    seed : int, optional
        The same seed and NumPy version produce the same choices, which differ from TensorFlow's.
    stop_on_empty_dataset : bool, default False
        Whether to end when an exhausted dataset is drawn; otherwise, another dataset is drawn.
    rerandomize_each_iteration : bool, optional
        Whether choices differ between iterations. By default, False.
    name : str, unused

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If `datasets` is empty, or the numbers of datasets and weights differ.
    TypeError
        If one of `datasets` is not a Dataset, their elements differ in structure or dtype, or weights are not floats.
    InvalidArgumentError
        During iteration, if a dataset of weights yields the wrong number of weights, or no positive weight.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> datasets = [Dataset.range(3), Dataset.range(10, 13)]
    >>> sorted(int(x) for x in Dataset.sample_from_datasets(datasets, weights=[0.8, 0.2], seed=1))
    [0, 1, 2, 10, 11, 12]
    """
    nodes = nodes_of(datasets)
    entropy, changes = seed_entropy(seed), bool(rerandomize_each_iteration)
    weights_node = node_of(weights)
    if weights_node is not None:
        draws = Draws(weights_node, RandomNumbers(None, entropy, changes), len(nodes))
        return type(datasets[0])(Choose(draws, nodes, bool(stop_on_empty_dataset)))
    drawn = _weights(weights, len(nodes))
    parts = tuple(node for node, weight in zip(nodes, drawn, strict=True) if weight > 0)
    if not parts:
        return datasets[0].take(0)
    choice = RandomNumbers([w for w in drawn if w > 0], entropy, changes)
    return type(datasets[0])(Sample(choice, parts, bool(stop_on_empty_dataset)))


def _weights(given: Any, count: int) -> list[float]:
    if given is None:
        return [1.0] * count
    weights = np.asarray(given)
    if weights.dtype.kind != "f":
        raise TypeError(f"weights must be floats, got {given!r}")
    if weights.shape != (count,):
        raise ValueError(f"weights must have one entry for each of the {count} datasets, got {given!r}")
    return [float(weight) for weight in weights]


@dataclass(frozen=True, eq=False)
class Sample(Choose):
    """Node that takes each element from a randomly drawn input."""

    @property
    def cardinality(self) -> int:
        """The cardinality of a single input; for several inputs, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        sizes = [part.cardinality for part in self.parts]
        if len(sizes) == 1:
            return sizes[0]
        endless = [size == INFINITE_CARDINALITY for size in sizes]
        is_endless = all(endless) if self.stops else any(endless)
        return INFINITE_CARDINALITY if is_endless else UNKNOWN_CARDINALITY


@dataclass(frozen=True, eq=False)
class Draws(Node):
    """Node that yields random dataset indices; `weights` and `numbers` yield weights and a random integer per draw."""

    weights: Node
    numbers: Node
    count: int

    @property
    def cardinality(self) -> int:
        return self.weights.cardinality

    @property
    def element_spec(self) -> Nest:
        return TensorSpec((), np.int64)

    @property
    def example(self) -> Nest:
        return np.int64(0)

    def open_elements(self, context: IterationContext) -> Stream:
        return RandomChoiceElements([self.weights.open(context), self.numbers.open(context)], self.count)


class RandomChoiceElements(InputStreams):
    """Stream of dataset indices, drawn with probabilities proportional to the weights."""

    def __init__(self, sources: Sequence[Stream], count: int) -> None:
        super().__init__(sources)
        self._count = count

    def __next__(self) -> Nest:
        if self._is_closed:
            raise StopIteration
        weights, numbers = self._inputs
        borders = np.cumsum(_drawn_weights(next(weights), self._count))
        place = float(next(numbers)) / 2**32 * borders[-1]
        # Limited, so that rounding cannot select the upper bound or a dataset of weight zero.
        at = int(np.searchsorted(borders, place, side="right"))
        return np.int64(min(at, int(np.searchsorted(borders, borders[-1]))))


def _drawn_weights(given: Any, count: int) -> Array:
    if type(given) is tuple and len(given) == 1:
        given = given[0]
    weights = as_ndarray(given, "weights")
    if weights.dtype.kind != "f":
        raise TypeError(f"weights must be floats, but the dataset of weights yielded {given!r}")
    if weights.shape != (count,):
        raise InvalidArgumentError(
            f"the number of weights must be the number of datasets, {count}, but the dataset of weights yielded "
            f"{given!r}"
        )
    positive = np.maximum(weights.astype(np.float64), 0.0)
    if not positive.sum() > 0 or not np.isfinite(positive).all():
        raise InvalidArgumentError(
            "weights must be finite, and at least one must be greater than zero, but the dataset of weights yielded "
            f"{given!r}"
        )
    return positive
