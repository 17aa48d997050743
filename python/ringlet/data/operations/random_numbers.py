"""Random numbers as a dataset, and random choices among datasets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.data.graph.cardinality import INFINITE_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node, Run, State, Stream
from ringlet.data.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["RandomNumbers", "random", "seed_entropy"]


def random(
    cls: type[Dataset],
    seed: int | None = None,
    rerandomize_each_iteration: bool | None = None,
    name: str | None = None,
) -> Dataset:
    """Make a dataset of random whole numbers, without end.

    Parameters
    ----------
    seed : int, optional
        A program that is run again with the same seed, and the same version of NumPy, sees the same numbers. They are
        NumPy's, not TensorFlow's.
    rerandomize_each_iteration : bool, optional
        True gives other numbers each time that the dataset is iterated, and in each round of a `repeat`. False, the
        default, gives the same ones every time, also without a seed.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        Of int64 from 0 to ``2**32 - 1``.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> numbers = Dataset.random(seed=4).take(2)
    >>> list(numbers) == list(numbers)
    True
    """
    return cls(RandomNumbers(None, seed_entropy(seed), bool(rerandomize_each_iteration)))


def seed_entropy(seed: Any) -> Any:
    """Give what NumPy makes a generator of: from a seed, or from the system where there is none.

    Examples
    --------
    >>> seed_entropy(3), seed_entropy(-3)
    (6, 5)
    """
    if seed is None:
        return np.random.SeedSequence().entropy
    try:
        number = index(seed)
    except TypeError:
        raise TypeError(f"seed must be an integer or None, got {seed!r}") from None
    return 2 * number if number >= 0 else -2 * number - 1  # NumPy takes no negative ones


@dataclass(frozen=True, eq=False)
class RandomNumbers(Node):
    """Random int64: positions drawn by their weights, or without weights anything below ``2**32``."""

    weights: Sequence[float] | None
    entropy: Any
    changes: bool
    # Counts the iterations of this node. Copies of it in a rewritten graph count on together.
    runs: Iterator[int] = field(default_factory=itertools.count, repr=False)

    @property
    def settings(self) -> dict[str, Any]:
        """All but the seed, which a state brings along."""
        return {"weights": self.weights, "changes": self.changes}

    @property
    def cardinality(self) -> int:
        """Infinite."""
        return INFINITE_CARDINALITY

    @property
    def element_spec(self) -> Nest:
        """A number."""
        return TensorSpec((), np.int64)

    @property
    def example(self) -> Nest:
        """Zero."""
        return np.int64(0)

    def choose(self, run: Run) -> None:
        """Choose the seed of this iteration."""
        self._choice(run)

    def _choice(self, run: Run) -> list[int]:
        choice: list[int] = run.choice(self, lambda: [self.entropy, next(self.runs)])
        return choice

    def open_elements(self, run: Run) -> Stream:
        """Start a run."""
        entropy, number = self._choice(run)
        key = (number, *run.rounds) if self.changes else ()
        seeds = np.random.SeedSequence(entropy, spawn_key=key)
        return RandomElements(np.random.Generator(np.random.PCG64(seeds)), self.weights)


class RandomElements(Stream):
    """Numbers of a generator."""

    __slots__ = ("_borders", "_is_closed", "_random")

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
        """Give no more."""
        self._is_closed = True

    def get_state(self) -> State:
        """Give the state of the generator; None once this stream was closed."""
        return {"generator": None if self._is_closed else self._random.bit_generator.state}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        if state["generator"] is None:
            self.close()
        else:
            self._random.bit_generator.state = state["generator"]
