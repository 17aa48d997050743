"""Questions to all peers of ``bench.parameter_server``, and checks of the answers.

Requires only NumPy, because environments of peers import it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from peer import Array, Peer

__all__ = [
    "CLOSURES",
    "NUM_CLOSURES",
    "PUSH",
    "SPARSE",
    "TABLE_SHAPE",
    "VECTOR_SIZE",
    "ServerPeer",
    "Variables",
    "Worker",
]

PUSH, CLOSURES, SPARSE = "push and pull 4 MiB", "1,000 empty closures", "sparse update of 1,000 rows"

VECTOR_SIZE, TABLE_SHAPE, NUM_CLOSURES = 1 << 20, (1_000_000, 64), 1000


class ServerPeer(Peer):
    """A job of two workers and an owner of the variables: a float32 vector and table, initially zeros.

    The questions come from another process, which sends and receives NumPy arrays.
    """

    variants: ClassVar[Mapping[str, Sequence[str]]] = dict.fromkeys((PUSH, CLOSURES, SPARSE), ("plain",))

    # Small whole numbers: sums of them are exact. No row occurs twice, so that NumPy adds them as fast as it can.
    _gradient = np.resize(np.arange(7, dtype=np.float32), VECTOR_SIZE)
    _indices = np.random.default_rng(0).permutation(TABLE_SHAPE[0])[:1000].astype(np.int64)
    _rows = np.resize(np.arange(5, dtype=np.float32), (1000, TABLE_SHAPE[1]))

    @abstractmethod
    def _push_and_pull(self, gradient: Array) -> Array:
        """Add to the vector, and return its new value."""

    @abstractmethod
    def _run_closures(self, count: int) -> Sequence[Any]:
        """Run `count` empty functions on the workers, wait for all, and return arguments of `_value_of`."""

    def _value_of(self, result: Any) -> Any:
        """Return the return value of a function."""
        return result

    @abstractmethod
    def _update_rows(self, indices: Array, rows: Array) -> None:
        """Add to rows of the table, and wait until they have changed."""

    @abstractmethod
    def _pull_rows(self, indices: Array) -> Array:
        """Return rows of the table."""

    def allocate(self, count: int, dtype: np.dtype[Any]) -> None:
        """Do nothing: variables are created once."""

    def fill(self) -> None:
        """Set both variables to zeros."""
        self._push_and_pull(-self._push_and_pull(np.zeros_like(self._gradient)))
        self._update_rows(self._indices, -self._pull_rows(self._indices))

    def clear(self) -> None:
        """Do nothing: times do not depend on the values."""

    def call(self, collective: str, variant: str) -> Callable[[], object]:
        """Return a function that makes one call."""
        calls: dict[str, Callable[[], object]] = {
            PUSH: lambda: self._push_and_pull(self._gradient),
            CLOSURES: lambda: self._run_closures(NUM_CLOSURES),
            SPARSE: lambda: self._update_rows(self._indices, self._rows),
        }
        return calls[collective]

    def complaint(self, collective: str, variant: str) -> str | None:
        """Compare the result of one call, or the table, with the expected values."""
        if collective == CLOSURES:
            given = [self._value_of(result) for result in self.result]
            is_right = given == [None] * NUM_CLOSURES
            return (
                None
                if is_right
                else f"{collective} gave {given[:3]}, ..., {len(given)} in all; expected None from each"
            )
        if collective == PUSH:
            given, expected = self.result, self._gradient
        else:
            given, expected = self._pull_rows(self._indices), self._rows
        return None if np.array_equal(given, expected) else f"{collective} left {given}, expected {expected}"


class Variables:
    """The vector and the table in an actor: a parameter server in NumPy."""

    def __init__(self) -> None:
        self._vector = np.zeros(VECTOR_SIZE, np.float32)
        self._table = np.zeros(TABLE_SHAPE, np.float32)

    def push_and_pull(self, gradient: Array) -> Array:
        """Add to the vector, and return it; sending it makes a copy."""
        self._vector += gradient
        return self._vector

    def update_rows(self, indices: Array, rows: Array) -> None:
        """Add to rows of the table."""
        self._table[indices] += rows

    def pull_rows(self, indices: Array) -> Array:
        """Return rows of the table."""
        return self._table[indices]


class Worker:
    """A worker as an actor."""

    def nothing(self) -> None:
        """Do nothing."""
