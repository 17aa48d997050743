"""Elements of several datasets, in random order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.data.graph.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ringlet.data.operations.choose_from_datasets import Choose, nodes_of
from ringlet.data.operations.random_numbers import RandomNumbers, seed_entropy

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["Sample", "sample_from_datasets"]


def sample_from_datasets(  # noqa: PLR0917 - the arguments are TensorFlow's
    datasets: Sequence[Dataset],
    weights: Any = None,
    seed: int | None = None,
    stop_on_empty_dataset: bool = False,
    rerandomize_each_iteration: bool | None = None,
    name: str | None = None,
) -> Dataset:
    """Give the next element of a dataset that is drawn at random, again and again.

    Parameters
    ----------
    datasets : sequence of Dataset
        Of one structure and the same dtypes.
    weights : sequence of float, optional
        How often each dataset is drawn; equally often, if they are not given. One that is zero or less leaves it out.
    seed : int, optional
        A program that is run again with the same seed, and the same version of NumPy, sees the same choices. They are
        NumPy's, not TensorFlow's.
    stop_on_empty_dataset : bool, default False
        Whether to end where a dataset is drawn that has no element left; otherwise another one is drawn.
    rerandomize_each_iteration : bool, optional
        True draws otherwise each time that the dataset is iterated. False is the default.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If there are no datasets, or not as many weights.
    TypeError
        If one of them is no dataset, they have elements of different structures or dtypes, or weights are no floats.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> datasets = [Dataset.range(3), Dataset.range(10, 13)]
    >>> sorted(int(x) for x in Dataset.sample_from_datasets(datasets, weights=[0.8, 0.2], seed=1))
    [0, 1, 2, 10, 11, 12]
    """
    nodes = nodes_of(datasets)
    drawn = _weights(weights, len(nodes))
    parts = tuple(node for node, weight in zip(nodes, drawn, strict=True) if weight > 0)
    if not parts:
        return datasets[0].take(0)
    choice = RandomNumbers([w for w in drawn if w > 0], seed_entropy(seed), bool(rerandomize_each_iteration))
    return type(datasets[0])(Sample(choice, parts, bool(stop_on_empty_dataset)))


def _weights(given: Any, count: int) -> list[float]:
    if given is None:
        return [1.0] * count
    weights = np.asarray(given)
    if weights.dtype.kind != "f":
        raise TypeError(f"weights must be floats, got {given!r}")
    if weights.shape != (count,):
        raise ValueError(f"weights must be as many as datasets: there are {count} datasets, and {given!r} was given")
    return [float(weight) for weight in weights]


@dataclass(frozen=True, eq=False)
class Sample(Choose):
    """The next element of a part that is drawn."""

    @property
    def cardinality(self) -> int:
        """That of a single part; infinite where nothing ends it, else unknown."""
        sizes = [part.cardinality for part in self.parts]
        if len(sizes) == 1:
            return sizes[0]
        endless = [size == INFINITE_CARDINALITY for size in sizes]
        is_endless = all(endless) if self.stops else any(endless)
        return INFINITE_CARDINALITY if is_endless else UNKNOWN_CARDINALITY
