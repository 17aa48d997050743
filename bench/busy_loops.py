"""Foreign load: processes that keep a core busy each, on any core that the system chooses."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator

from bench.job_processes import cpu_seconds_of

__all__ = ["busy_loops"]

# Ends with the process that has started it, however that ends.
_LOOP = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(100_000):
        pass
"""


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[Callable[[], float]]:
    """Run `count` busy loops within the context.

    Yields
    ------
    callable
        Returns the CPU time that they have used, in seconds.

    Examples
    --------
    >>> with busy_loops(1) as cpu_seconds:
    ...     while cpu_seconds() == 0.0:
    ...         pass
    """
    loops: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            loops.append(subprocess.Popen([sys.executable, "-S", "-c", _LOOP]))
        yield lambda: cpu_seconds_of(loop.pid for loop in loops)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
