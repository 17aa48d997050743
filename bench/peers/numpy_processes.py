"""NumPy in processes that share memory: each sums its part of all buffers into all of them, between two barriers."""

from __future__ import annotations

import mmap
import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from peer import ArrayRank, begin, end_with_driver, pin, serve

# Elements that are summed at a time, so that the sum stays in the cache.
_BLOCK = 16 << 10


class NumpyRank(ArrayRank):
    """A rank; all buffers are in an anonymous file that rank 0 created."""

    variants: ClassVar[Mapping[str, Sequence[str]]] = {"all_reduce": ("in_place", "out"), "barrier": ("out",)}

    def __init__(self, rank: int, num_ranks: int, barrier: Any, seconds: Any, file: Path) -> None:
        self.rank, self.num_ranks, self.num_processes = rank, num_ranks, num_ranks
        self.version = f"numpy {np.__version__}, multiprocessing.Barrier"
        self.barrier = barrier.wait
        self._seconds = seconds
        self._file = file
        self._buffers = np.empty((2, num_ranks, 0))

    def largest(self, value: float) -> float:
        """Return the largest value of all ranks."""
        self._seconds[self.rank] = value
        self.barrier()
        result = max(self._seconds[: self.num_ranks])
        self.barrier()
        return float(result)

    def allocate(self, count: int, dtype: np.dtype[Any]) -> None:
        """Map the buffers of all ranks."""
        size = 2 * self.num_ranks * count * dtype.itemsize
        with self._file.open("r+b") as file:
            if self.rank == 0:
                file.truncate(size)
            self.barrier()
            mapping = mmap.mmap(file.fileno(), size)
        self._buffers = np.frombuffer(mapping, dtype).reshape(2, self.num_ranks, count)
        self.x, self.y = self._buffers[:, self.rank]

    def release(self) -> None:
        """Unmap the buffers, and free the memory."""
        super().release()
        self._buffers = np.empty((2, self.num_ranks, 0))
        self.barrier()
        if self.rank == 0:
            os.truncate(self._file, 0)
        self.barrier()

    def call(self, collective: str, variant: str) -> Callable[[], object]:
        """Return a function that makes one call."""
        inputs, outputs = self._buffers[0], self._buffers[0 if variant == "in_place" else 1]
        count = inputs.shape[1]
        first, last = (count * rank // self.num_ranks for rank in (self.rank, self.rank + 1))
        blocks = [(begin, min(begin + _BLOCK, last)) for begin in range(first, last, _BLOCK)]
        parts = [([x[a:b] for x in inputs], [y[a:b] for y in outputs]) for a, b in blocks]
        total = np.empty(min(_BLOCK, count), inputs.dtype)

        def one_call() -> None:
            self.barrier()
            for sources, targets in parts:
                part = total[: len(sources[0])]
                np.add(sources[0], sources[1], out=part)
                for source in sources[2:]:
                    np.add(part, source, out=part)
                for target in targets:
                    np.copyto(target, part)
            self.barrier()

        return one_call


def _run(rank: int, options: Any, barrier: Any, seconds: Any, file: Path) -> None:
    pin(rank, options.cores)
    if rank != 0:
        end_with_driver(options.driver, options.folder)
    serve(NumpyRank(rank, options.ranks, barrier, seconds, file), options)


def main() -> None:
    """Answer questions as rank 0, which forks the others."""
    options = begin()
    context = multiprocessing.get_context("fork")
    barrier, seconds = context.Barrier(options.ranks), context.Array("d", options.ranks, lock=False)
    file = Path(f"/proc/{os.getpid()}/fd/{os.memfd_create('peer')}")
    shared = (options, barrier, seconds, file)
    others = [context.Process(target=_run, args=(rank, *shared), daemon=True) for rank in range(1, options.ranks)]
    for other in others:
        other.start()
    _run(0, *shared)
    for other in others:
        other.join(timeout=10)


if __name__ == "__main__":
    main()
