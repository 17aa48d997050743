"""Dataset.random: infinite random integers, and random indices with given weights."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY
from ringlet.data.graph.count_arguments import whole
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, Node, State, Stream
from ringlet.data.tensor_spec import TensorSpec


def random(
    cls: type[Dataset], seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
) -> Dataset:
    """Create an infinite dataset of random integers.

    Parameters
    ----------
    seed : int, optional
        The same seed and NumPy version produce the same numbers, which differ from TensorFlow's.
    rerandomize_each_iteration : bool, optional
        True yields different numbers in each iteration and in each round of a `repeat`. False, the default, yields the
        same numbers in all iterations, even without a seed.
    name : str, unused

    Returns
    -------
    Dataset
        Its elements are int64 from 0 to ``2**32 - 1``.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> numbers = Dataset.random(seed=4).take(2)
    >>> list(numbers) == list(numbers)
    True
    """
    return cls(RandomNumbers(None, seed_entropy(seed), bool(rerandomize_each_iteration)))


def seed_entropy(seed: Any) -> Any:
    """Return the entropy of a NumPy generator, from a seed or from the system."""
    if seed is None:
        return np.random.SeedSequence().entropy
    number = whole(seed, "seed", "an integer or None")
    return 2 * number if number >= 0 else -2 * number - 1  # NumPy rejects negative seeds


class Seeded:
    """Mixin of nodes that draw random numbers from `entropy`; `runs` counts the iterations of a node and its copies."""

    entropy: Any
    runs: Iterator[int]

    def choose(self, context: IterationContext) -> None:
        self._choice(context)

    def _choice(self, context: IterationContext) -> list[int]:
        choice: list[int] = context.choice(self, lambda: [self.entropy, next(self.runs)])
        return choice

    def generator(self, context: IterationContext, changes: bool) -> np.random.Generator:
        """Return the generator of an iteration; if `changes`, the numbers differ between iterations and rounds."""
        entropy, number = self._choice(context)
        key = (number, *context.rounds) if changes else ()
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy, spawn_key=key)))


@dataclass(frozen=True, eq=False)
class RandomNumbers(Seeded, Node):
    """Node that yields random int64: indices of `weights`, drawn in proportion to them, or numbers below ``2**32``."""

    weights: Sequence[float] | None
    entropy: Any
    changes: bool
    runs: Iterator[int] = field(default_factory=itertools.count, repr=False)

    @property
    def settings(self) -> dict[str, Any]:
        return {"weights": self.weights, "changes": self.changes}

    cardinality = INFINITE_CARDINALITY

    @property
    def element_spec(self) -> Nest:
        return TensorSpec((), np.int64)

    @property
    def example(self) -> Nest:
        return np.int64(0)

    def open_elements(self, context: IterationContext) -> Stream:
        return RandomElements(self.generator(context, self.changes), self.weights)


class RandomElements(Stream):
    """Stream of the elements of `RandomNumbers`, drawn with a NumPy generator."""

    def __init__(self, random: np.random.Generator, weights: Sequence[float] | None) -> None:
        self._random = random
        self._is_closed = False
        self._borders = None if weights is None else np.cumsum(weights) / np.sum(weights)

    def __next__(self) -> Nest:
        if self._is_closed:
            raise StopIteration
        if self._borders is None:
            return np.int64(self._random.integers(0, 2**32))
        return np.int64(np.searchsorted(self._borders[:-1], self._random.random(), side="right"))

    def close(self) -> None:
        self._is_closed = True

    def get_state(self) -> State:
        """Return the state of the generator; None if this stream is closed."""
        return {"generator": None if self._is_closed else self._random.bit_generator.state}

    def set_state(self, state: State) -> None:
        if state["generator"] is None:
            self.close()
        else:
            self._random.bit_generator.state = state["generator"]
