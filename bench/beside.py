"""Alternating rounds beside own processes, and the fraction of the machine that others used."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from bench import harness
from bench.machine import Others, usable_cores

__all__ = ["alternate_beside"]

T = TypeVar("T")


def alternate_beside(
    subjects: Mapping[str, Callable[[], T]], cpu_seconds: Callable[[], float], *, rounds: int
) -> tuple[dict[str, list[T]], float]:
    """Measure several subjects in alternation, some of which run in long-lived processes.

    Parameters
    ----------
    subjects : mapping of str to callable
    cpu_seconds : callable
        Returns the CPU time that those processes have used. They are running children, which
        :class:`~bench.machine.Others` counts as others.
    rounds : int
        Of each subject.

    Returns
    -------
    answers : dict of str to list
    share : float
        Fraction of the cores' time that unrelated processes used.

    Examples
    --------
    >>> answers, share = alternate_beside({"a": lambda: 1}, lambda: 0.0, rounds=2)
    >>> answers, 0.0 <= share <= 1.0
    ({'a': [1, 1]}, True)
    """
    others, start, used = Others(), time.perf_counter(), cpu_seconds()
    answers = harness.alternate(subjects, rounds=rounds)
    ours = (cpu_seconds() - used) / ((time.perf_counter() - start) * len(usable_cores()))
    return answers, max(0.0, others.share() - max(0.0, ours))
