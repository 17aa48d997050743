"""Common code of both peers of datasets: the arrays, and the check that each row occurs once, with its label."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from peer import Peer

__all__ = ["DatasetPeer"]


class DatasetPeer(Peer):
    """All replicas of one process.

    Attributes
    ----------
    rows, columns, batch, record_count : int
    records : str
        Path of the file to read.
    """

    def __init__(self, num_replicas: int) -> None:
        self.num_ranks = num_replicas
        self.rows, self.columns, self.batch, self.record_count = (
            int(os.environ[f"BENCH_{name}"]) for name in ("ROWS", "COLUMNS", "BATCH", "RECORD_COUNT")
        )
        self.records = os.environ["BENCH_RECORDS"]
        self.labels = np.arange(self.rows)
        self.features = np.repeat(self.labels.astype(np.float32)[:, None], self.columns, 1)

    @abstractmethod
    def steps(self, question: str, variant: str) -> Iterable[Any]:
        """Return the iterable to traverse."""

    @abstractmethod
    def parts(self, question: str, variant: str, step: Any) -> Iterator[tuple[Any, ...]]:
        """Return the arrays of each replica in a step, as NumPy arrays."""

    def allocate(self, count: int, dtype: np.dtype[Any]) -> None:
        """Do nothing: the arrays are permanent."""

    def fill(self) -> None:
        """Do nothing."""

    def clear(self) -> None:
        """Do nothing."""

    def call(self, collective: str, variant: str) -> Callable[[], object]:
        """Return a function that iterates over all steps once."""
        steps = self.steps(collective, variant)

        def once() -> int:
            number = 0
            for _ in steps:
                number += 1
            return number

        return once

    def complaint(self, collective: str, variant: str) -> str | None:
        """Return the fault of another iteration over all steps, or None."""
        found = [
            part
            for step in self.steps(collective, variant)
            for part in self.parts(collective, variant, step)
            if len(part[-1])
        ]
        if collective == "TFRecord":
            count = sum(len(part[0]) for part in found)
            return None if count == self.record_count else f"{count} records came of {self.record_count}"
        labels = np.concatenate([part[-1] for part in found])
        if not np.array_equal(np.sort(labels), self.labels):
            return f"{collective}, {variant}: not every element came once"
        if any(len(part) == 2 and not np.array_equal(part[0][:, 0], part[1]) for part in found):
            return f"{collective}, {variant}: rows came beside labels of others"
        return None
