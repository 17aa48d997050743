"""Ringlet's all-reduce from one thread that has the buffers of all ranks, in the interface of peers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bench.peers.peer import Array, Peer, complaint_about, fill
from ringlet.collectives import Group

__all__ = ["ControllerThread"]


class ControllerThread(Peer):
    """All ranks, in the calling thread and the workers that the library starts.

    Parameters
    ----------
    num_ranks : int
    """

    variants: ClassVar[Mapping[str, Sequence[str]]] = {"all_reduce": ("in_place", "out")}

    def __init__(self, num_ranks: int) -> None:
        self.num_ranks = num_ranks
        self._group = Group(num_ranks)
        self._x: list[Array] = []
        self._y: list[Array] = []

    def allocate(self, count: int, dtype: np.dtype[Any]) -> None:
        """Allocate an input and an output for every rank."""
        self._x, self._y = ([np.zeros(count, dtype) for _ in range(self.num_ranks)] for _ in range(2))

    def release(self) -> None:
        """Release all arrays."""
        self._x, self._y = [], []

    def fill(self) -> None:
        """Write the inputs, and invalid values to the outputs."""
        for rank, (x, y) in enumerate(zip(self._x, self._y, strict=True)):
            fill(x, rank)
            y.fill(1)

    def clear(self) -> None:
        """Zero all arrays."""
        for array in (*self._x, *self._y):
            array.fill(0)

    def call(self, collective: str, variant: str) -> Callable[[], object]:
        """Return a function that makes one call: a plan, which checks its arguments once, as in a loop."""
        return self._group.plan_all_reduce_all(self._x, outs=self._x if variant == "in_place" else self._y)

    def complaint(self, collective: str, variant: str) -> str | None:
        """Compare the result of every rank with the expected result."""
        results = self._x if variant == "in_place" else self._y
        found = (complaint_about(given, collective, rank, self.num_ranks) for rank, given in enumerate(results))
        return next((complaint for complaint in found if complaint is not None), None)
