"""The answers that an all-reduce must give, from NumPy, before any time of it is believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Inputs", "WrongAnswerError", "tree_reduce"]

Array = NDArray[Any]

# Elements that are made and checked at a time, so that checking gigabytes needs megabytes.
_BLOCK = 1 << 18


class WrongAnswerError(AssertionError):
    """A collective gave another answer than the reference, so nothing about its speed is reported."""


def tree_reduce(arrays: Sequence[Array], op: str) -> Array:
    """Combine one array of each rank in the documented order ((0+1)+(2+3))+..., a lone subtree moving up unchanged.

    Parameters
    ----------
    arrays : sequence of ndarray
        One per rank, of one shape and dtype.
    op : {"SUM", "MEAN"}
        MEAN divides once at the end; of integers it divides the wrapped sum in float64.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> tree_reduce([np.float32([1e8]), np.float32([1.0]), np.float32([-1e8])], "SUM")
    array([0.], dtype=float32)
    """
    level: list[Array] = list(arrays)
    with np.errstate(over="ignore"):
        while len(level) > 1:
            pairs = [level[i] + level[i + 1] for i in range(0, len(level) - 1, 2)]
            level = pairs + level[2 * len(pairs) :]
    total = level[0]
    if op == "SUM":
        return total
    return np.true_divide(total, len(arrays), dtype=np.float64 if total.dtype.kind == "i" else total.dtype)


@dataclass(frozen=True)
class Inputs:
    """What each rank contributes to a verified all-reduce: different values at every rank and every place.

    Attributes
    ----------
    num_ranks, count : int
        Elements per rank.
    dtype : numpy dtype
    is_exact : bool
        Small whole numbers, whose sums are the same in any order; else values whose sums show the order of rounding.
    """

    num_ranks: int
    count: int
    dtype: np.dtype[Any]
    is_exact: bool

    def fill(self, rank: int, into: Array) -> None:
        """Write the values of `rank` to `into`, shape ``(count,)``."""
        for begin, values in self._blocks(rank):
            into[begin : begin + len(values)] = values

    def check(self, result: Array, op: str, who: str) -> None:
        """Compare `result` with the reference, bit for bit.

        Parameters
        ----------
        result : ndarray, shape (count,)
        op : {"SUM", "MEAN"}
        who : str
            Named in the error.

        Raises
        ------
        WrongAnswerError
            Naming the first element that differs.
        """
        for blocks in zip(*(self._blocks(rank) for rank in range(self.num_ranks)), strict=True):
            begin = blocks[0][0]
            expected = tree_reduce([values for _, values in blocks], op)
            given = result[begin : begin + len(expected)]
            if given.dtype != expected.dtype or given.tobytes() != expected.tobytes():
                self._refuse(given, expected, begin, who)

    @staticmethod
    def _refuse(given: Array, expected: Array, begin: int, who: str) -> None:
        if given.dtype != expected.dtype or given.shape != expected.shape:
            facts = f"gave {given.dtype}{list(given.shape)}, expected {expected.dtype}{list(expected.shape)}"
        else:
            place = int(np.flatnonzero(given != expected)[0]) if (given != expected).any() else 0
            facts = f"element {begin + place} is {given[place]!r}, expected {expected[place]!r}"
        raise WrongAnswerError(f"{who}: {facts}. No time is reported for a wrong answer.")

    def _blocks(self, rank: int) -> list[tuple[int, Array]] | Any:
        pattern = self._pattern(rank)
        for number, begin in enumerate(range(0, self.count, _BLOCK)):
            values = pattern[: min(_BLOCK, self.count - begin)]
            # Each block is scaled by its number, so that a block that lands in another's place shows.
            factor = number % 17 + 1
            yield begin, (values * self.dtype.type(factor)).astype(self.dtype, copy=False)

    def _pattern(self, rank: int) -> Array:
        random = np.random.default_rng((rank, 20_240_229))
        size = min(_BLOCK, self.count)
        if self.is_exact or self.dtype.kind == "i":
            return random.integers(-1000, 1000, size).astype(self.dtype)
        return (random.standard_normal(size) * 10.0 ** random.integers(-4, 5, size)).astype(self.dtype)
