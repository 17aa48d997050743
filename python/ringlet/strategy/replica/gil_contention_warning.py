"""A hint, given once, to programs whose replicas take turns in the interpreter instead of running side by side."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ringlet.devices import visible_cores

__all__ = ["SlowStepHint", "slow_step_hint"]

_log = logging.getLogger(__name__)

# Shorter steps are dominated by costs that the hint is not about.
SLOW_SECONDS = 0.02
# So many slow steps in a row, each of which kept the process at about one core.
STEPS_BEFORE_HINT = 5
# CPU seconds per second of a process whose threads take turns; below, they wait for something else than each other.
ONE_CORE = (0.8, 1.25)


@dataclass
class SlowStepHint:
    """Watches steps, and logs one WARNING when threads cannot help.

    Measuring CPU time costs half a microsecond, so it begins after a slow step; fast steps cost two readings of the
    clock.

    Parameters
    ----------
    cores : int
        Cores that threads could use.
    wall_time, cpu_time : callable
        Clocks, in seconds: of the world and of all threads of the process.
    machine_load : callable
        How many threads of the whole machine want a core: where more do than there are cores, steps are slow because
        of others, and no hint is given.

    Examples
    --------
    >>> wall, cpu = iter(range(100)), iter(range(100))
    >>> hint = SlowStepHint(2, lambda: next(wall), lambda: next(cpu), machine_load=lambda: 1.0)
    >>> for _ in range(STEPS_BEFORE_HINT + 1):
    ...     hint.finish(hint.start())
    >>> hint.is_given
    True
    """

    cores: int
    wall_time: Callable[[], float] = time.perf_counter
    cpu_time: Callable[[], float] = time.process_time
    machine_load: Callable[[], float] = lambda: os.getloadavg()[0]
    is_given: bool = False
    _last_was_slow: bool = field(default=False, repr=False)
    _num_serial: int = field(default=0, repr=False)

    def start(self) -> tuple[float, float | None]:
        """Begin a step; give what :meth:`finish` needs."""
        return self.wall_time(), self.cpu_time() if self._last_was_slow else None

    def finish(self, started: tuple[float, float | None]) -> None:
        """End a step."""
        wall = self.wall_time() - started[0]
        self._last_was_slow = wall > SLOW_SECONDS and not self.is_given and self.cores > 1
        if not self._last_was_slow:
            self._num_serial = 0
        elif started[1] is not None:
            self._judge(wall, self.cpu_time() - started[1])

    def _judge(self, wall: float, cpu: float) -> None:
        low, high = ONE_CORE
        self._num_serial = self._num_serial + 1 if low < cpu / wall < high else 0
        if self._num_serial < STEPS_BEFORE_HINT or self.machine_load() > self.cores:
            return
        self.is_given = True
        _log.warning(
            "the last %d steps, of %.0f ms or so, kept 1 of %d cores busy: their replicas spend the time inside the "
            "Python interpreter, where threads take turns. Move the work into NumPy calls on large arrays, or run one "
            "process for each core. This hint is given once",
            STEPS_BEFORE_HINT,
            1e3 * wall,
            self.cores,
        )


_hints: list[SlowStepHint] = []


def slow_step_hint() -> SlowStepHint:
    """Give the watcher of this process, made at its first use.

    Returns
    -------
    SlowStepHint

    Examples
    --------
    >>> slow_step_hint() is slow_step_hint()
    True
    """
    if not _hints:
        _hints.append(SlowStepHint(visible_cores().count))
    return _hints[0]
