"""How long something may still take."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

__all__ = ["Deadline"]


@dataclass(frozen=True)
class Deadline:
    """A point in time, and how much was allowed until then.

    Attributes
    ----------
    seconds : float
        What was allowed; infinity for as long as it takes.
    ends_at : float
        On the clock of ``time.monotonic``.

    Examples
    --------
    >>> Deadline.after(math.inf).is_over(), Deadline.after(0.0).is_over()
    (False, True)
    """

    seconds: float
    ends_at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Start to count now."""
        return cls(seconds, time.monotonic() + seconds)

    def is_over(self) -> bool:
        """Tell whether no time is left."""
        return time.monotonic() >= self.ends_at

    def left(self, most: float) -> float:
        """Give the seconds that are left, at least 0, and at most so many."""
        return min(max(self.ends_at - time.monotonic(), 0.0), most)

    def __str__(self) -> str:
        return "for ever" if math.isinf(self.seconds) else f"{self.seconds:g} s"
