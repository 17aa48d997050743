"""NumPy in one thread that has the buffers of all ranks: the sum, and a copy of it into each of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from peer import Array, Peer, begin, complaint_about, fill, pin, serve

# Bytes of each buffer that are worked on at a time; 0 for all of them. The fastest counts.
_BLOCK_BYTES = (0, 32 << 10, 128 << 10, 512 << 10)


class NumpyProcess(Peer):
    """All ranks. ``shared`` means one result for all of them."""

    variants: ClassVar[Mapping[str, Sequence[str]]] = {"all_reduce": ("in_place", "out", "shared")}

    def __init__(self, num_ranks: int) -> None:
        self.num_ranks = num_ranks
        self.version = f"numpy {np.__version__}"
        self._x: list[Array] = []
        self._y: list[Array] = []
        self._calls: dict[str, Callable[[], object]] = {}

    def allocate(self, count: int, dtype: np.dtype[Any]) -> None:
        """Allocate an input and an output for every rank."""
        self._x = [np.zeros(count, dtype) for _ in range(self.num_ranks)]
        self._y = [np.zeros(count, dtype) for _ in range(self.num_ranks)]
        self._calls = {}

    def release(self) -> None:
        """Release all arrays."""
        self._x, self._y, self._calls = [], [], {}

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
        """Return a function that makes one call, in blocks of the fastest size for these buffers."""
        if variant not in self._calls:
            self._calls[variant] = min(self._candidates(variant), key=_shortest_of_three)
            self.clear()
        return self._calls[variant]

    def _candidates(self, variant: str) -> Iterator[Callable[[], object]]:
        outputs = self._x if variant == "in_place" else self._y[:1] if variant == "shared" else self._y
        for block_bytes in _BLOCK_BYTES:
            if block_bytes < self._x[0].nbytes:
                count = block_bytes // self._x[0].itemsize or len(self._x[0])
                yield partial(_all_reduce, _blocks(self._x, count), _blocks(outputs, count))

    def complaint(self, collective: str, variant: str) -> str | None:
        """Compare the result of every rank, or the only one, with the expected result."""
        results = self._x if variant == "in_place" else self._y[:1] if variant == "shared" else self._y
        found = (complaint_about(given, collective, rank, self.num_ranks) for rank, given in enumerate(results))
        return next((complaint for complaint in found if complaint is not None), None)


def _blocks(arrays: list[Array], count: int) -> list[list[Array]]:
    """Return, for each run of `count` elements, that run of every array."""
    return [[array[begin : begin + count] for array in arrays] for begin in range(0, len(arrays[0]), count)]


def _all_reduce(inputs: list[list[Array]], outputs: list[list[Array]]) -> None:
    for parts, results in zip(inputs, outputs, strict=True):
        total = results[0]
        np.add(parts[0], parts[1], out=total)
        for part in parts[2:]:
            np.add(total, part, out=total)
        for result in results[1:]:
            np.copyto(result, total)


def _shortest_of_three(call: Callable[[], object]) -> float:
    call()
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    """Answer questions as all ranks."""
    options = begin()
    pin(0, options.cores)
    serve(NumpyProcess(options.ranks), options)


if __name__ == "__main__":
    main()
