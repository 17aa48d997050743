"""The cost of creating and releasing an array in shared memory while many others exist.

Every round creates and releases small arrays per number of live arrays. The median of all rounds is reported, and the
best, because other work on the machine only adds time::

    python -m bench.shared_arrays --live 0,1000,100000
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bench.goals import at_most, table
from bench.recorder import block_seconds
from bench.report import format_seconds
from ringlet import _core

_CALLS = 2000
_MOST_SECONDS = 1e-6


def measure(live: Sequence[int], num_bytes: int, rounds: int) -> dict[int, list[float]]:
    """Return the seconds per call in each round, for each number of live arrays."""
    dtype = np.dtype(np.uint8)
    seconds: dict[int, list[float]] = {count: [] for count in live}
    for _ in range(rounds):
        arrays: list[NDArray[np.uint8]] = []
        for count in sorted(live):
            while len(arrays) < count:
                arrays.append(_core.empty_shared([num_bytes], dtype))
                arrays[-1][:] = len(arrays) % 251
            seconds[count] += block_seconds(lambda: _core.empty_shared([num_bytes], dtype), _CALLS, 5)
        for number, array in enumerate(arrays, start=1):
            if not (array == number % 251).all():
                raise AssertionError(f"live array {number} was overwritten.")
    return seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--live", default="0,1000,20000,100000", help="numbers of live arrays (%(default)s)")
    parser.add_argument("--bytes", type=int, default=64, help="of each array (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="(%(default)s)")
    options = parser.parse_args(arguments)
    seconds = measure([int(count) for count in options.live.split(",")], options.bytes, options.rounds)
    print(f"{'live arrays':>12}{'best':>12}{'median':>12}")
    for count, found in seconds.items():
        print(f"{count:>12,}{format_seconds(min(found)):>12}{format_seconds(statistics.median(found)):>12}")
    most = max(seconds)
    what = f"an array of {options.bytes} B beside {most:,} others"
    print(table([at_most("34", what, _MOST_SECONDS, min(seconds[most]), format_seconds)]))


if __name__ == "__main__":
    sys.exit(main())
