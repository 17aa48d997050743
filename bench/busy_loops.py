"""Foreign load: processes that keep a core busy each, on any core that the system chooses."""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator

from bench.job_processes import cpu_seconds_of

__all__ = ["add_option", "busy_loops"]

# Ends with the process that has started it, however that ends.
_LOOP = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(100_000):
        pass
"""


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--busy N``, the number of loops beside what is measured."""
    parser.add_argument("--busy", type=_number_of_loops, default=0, metavar="N", help="busy loops beside (%(default)s)")


def _number_of_loops(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"takes a number of busy loops, 0 or more, and was given {text!r}.")
    return int(text)


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
