"""Deadline: the time by which an operation must end."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Deadline:
    """A time-out of `seconds` that ends when ``time.monotonic()`` reaches `ends_at`; both may be infinite."""

    seconds: float
    ends_at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline `seconds` from now."""
        return cls(seconds, time.monotonic() + seconds)

    def is_over(self) -> bool:
        """Return whether the deadline has passed."""
        return time.monotonic() >= self.ends_at

    def left(self, most: float) -> float:
        """Return the remaining seconds, clipped to the range from 0 to `most`."""
        return min(max(self.ends_at - time.monotonic(), 0.0), most)

    def __str__(self) -> str:
        return "none" if math.isinf(self.seconds) else f"{self.seconds:g} s"
