"""Workers of a cluster as threads, and files in memory, for tests of distributed datasets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet.data import Dataset
from ringlet.data.graph.node import IterationContext, Stream
from ringlet.data.readers.file_reader import FileReader
from ringlet.data.tensor_spec import TensorSpec


class Sum:
    """Sums over threads that all call it, as an all-reduce over processes does."""

    def __init__(self, num_workers: int) -> None:
        self._barrier = threading.Barrier(num_workers, timeout=20)
        self._counts = [0] * num_workers

    def of(self, worker: int) -> Callable[[int], int]:
        def call(count: int) -> int:
            self._counts[worker] = count
            self._barrier.wait()
            total = sum(self._counts)
            self._barrier.wait()
            return total

        return call


def on_workers(num_workers: int, work: Callable[[int, Callable[[int], int]], Any]) -> list[Any]:
    """Call `work` for each worker, in threads, with a function that sums an int over all workers."""
    total = Sum(num_workers)
    if num_workers == 1:
        return [work(0, total.of(0))]
    with ThreadPoolExecutor(num_workers) as pool:
        return list(pool.map(work, range(num_workers), map(total.of, range(num_workers))))


@dataclass(frozen=True, eq=False)
class Numbers(FileReader):
    """A reader of files that are ranges: the name ``"3:7"`` holds 3, 4, 5 and 6."""

    num_parallel_reads: int | None = None

    @property
    def element_spec(self) -> TensorSpec:
        """Return the spec of a number."""
        return TensorSpec((), np.int64)

    @property
    def example(self) -> Any:
        """Return zero."""
        return np.int64(0)

    def open_file(self, name: str) -> Any:
        """Never called."""
        raise NotImplementedError

    def open_elements(self, context: IterationContext) -> Stream:
        """Start an iteration."""
        return _NumberStream(self.input.open(context))


class _NumberStream(Stream):
    def __init__(self, names: Stream) -> None:
        self._numbers = self._read(names)

    @staticmethod
    def _read(names: Stream) -> Iterator[Any]:
        for name in names:
            yield from map(np.int64, range(*map(int, str(name).split(":"))))

    def __next__(self) -> Any:
        return next(self._numbers)

    def close(self) -> None:
        """Drop the files."""
        self._numbers = iter(())


def number_files(sizes: list[int]) -> Dataset:
    """Return a dataset of the numbers from 0 on, in files of these sizes."""
    stops = np.cumsum(sizes).tolist()
    names = [f"{stop - size}:{stop}" for size, stop in zip(sizes, stops, strict=True)]
    return Dataset(Numbers(Dataset.from_tensor_slices(names).node))
