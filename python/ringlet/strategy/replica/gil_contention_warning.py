"""A warning, logged once, for programs whose replica threads contend for the GIL."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ringlet.devices import visible_cores

_log = logging.getLogger(__name__)

HAS_INTERPRETER_LOCK = getattr(sys, "_is_gil_enabled", lambda: True)()

# Minimum duration of a slow step; costs other than lock contention dominate shorter steps.
SLOW_SECONDS = 0.02
# Number of consecutive slow steps on about one core after which the warning is logged.
STEPS_BEFORE_WARNING = 5
# Range of CPU seconds per second of a process whose threads contend for the GIL; at lower values, the threads wait for
# something other than the GIL.
ONE_CORE = (0.8, 1.25)


@dataclass
class GilContentionMonitor:
    """Measures steps, and logs one WARNING if threads cannot speed them up.

    CPU time is read only after a slow step, because reading it takes 0.5 us; fast steps read the clock twice. If
    `machine_load`, the number of runnable threads of the machine, exceeds its cores, other processes make the steps
    slow, and no warning is logged.
    """

    cores: int
    wall_time: Callable[[], float] = time.perf_counter
    cpu_time: Callable[[], float] = time.process_time
    machine_load: Callable[[], float] = lambda: os.getloadavg()[0]
    has_warned: bool = False
    _last_was_slow: bool = field(default=False, repr=False)
    _num_serial: int = field(default=0, repr=False)

    def start(self) -> tuple[float, float | None]:
        """Begin a step; return the argument of :meth:`finish`."""
        return self.wall_time(), self.cpu_time() if self._last_was_slow else None

    def finish(self, started: tuple[float, float | None]) -> None:
        """End a step."""
        wall = self.wall_time() - started[0]
        self._last_was_slow = wall > SLOW_SECONDS and not self.has_warned and self.cores > 1
        if not self._last_was_slow:
            self._num_serial = 0
        elif started[1] is not None:
            self._evaluate(wall, self.cpu_time() - started[1])

    def _evaluate(self, wall: float, cpu: float) -> None:
        low, high = ONE_CORE
        self._num_serial = self._num_serial + 1 if low < cpu / wall < high else 0
        if self._num_serial < STEPS_BEFORE_WARNING or self.machine_load() > self.cores:
            return
        self.has_warned = True
        _log.warning(
            "the last %d steps, of about %.0f ms each, kept 1 of %d cores busy: their replicas spend the time inside "
            "the Python interpreter, which runs one thread at a time. Move the work into NumPy calls on large arrays, "
            "or run one process for each core. This warning is logged once",
            STEPS_BEFORE_WARNING,
            1e3 * wall,
            self.cores,
        )


_monitors: list[GilContentionMonitor] = []


def gil_contention_monitor() -> GilContentionMonitor:
    """Return the monitor of this process, created on first use."""
    if not _monitors:
        _monitors.append(GilContentionMonitor(visible_cores().count if HAS_INTERPRETER_LOCK else 1))
    return _monitors[0]
