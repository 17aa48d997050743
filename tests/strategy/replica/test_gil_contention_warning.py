"""The warning to programs whose replica threads contend for the interpreter: logged once, and only to them."""

from __future__ import annotations

import logging

import pytest

import ringlet
from ringlet.strategy.replica.gil_contention_warning import STEPS_BEFORE_WARNING, GilContentionMonitor


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def step_of(monitor: GilContentionMonitor, wall: float, cpu: float) -> None:
    started = monitor.start()
    monitor.wall_time.now += wall  # type: ignore[attr-defined]
    monitor.cpu_time.now += cpu  # type: ignore[attr-defined]
    monitor.finish(started)


def new_monitor(cores: int = 2, load: float = 1.0) -> GilContentionMonitor:
    return GilContentionMonitor(cores, wall_time=Clock(), cpu_time=Clock(), machine_load=lambda: load)


@pytest.mark.parametrize(
    ("wall", "cpu", "cores", "has_warned"),
    [
        # seconds of a step, CPU seconds in it
        (0.05, 0.05, 2, True),
        (0.05, 0.06, 2, True),
        (0.05, 0.10, 2, False),  # both cores are busy
        (0.05, 0.01, 2, False),  # the step waits for something else
        (0.01, 0.01, 2, False),  # a fast step
        (0.05, 0.05, 1, False),  # one core: threads could not help
    ],
)
def test_only_slow_steps_that_keep_one_core_busy_count(wall, cpu, cores, has_warned):
    monitor = new_monitor(cores)
    for _ in range(STEPS_BEFORE_WARNING + 1):
        step_of(monitor, wall, cpu)
    assert monitor.has_warned is has_warned


def test_it_is_not_logged_while_other_processes_use_the_cores():
    monitor = new_monitor(load=3.5)
    for _ in range(5 * STEPS_BEFORE_WARNING):
        step_of(monitor, 0.05, 0.05)
    assert not monitor.has_warned


def test_it_is_logged_once_as_a_warning(caplog):
    monitor = new_monitor()
    for _ in range(5 * STEPS_BEFORE_WARNING):
        step_of(monitor, 0.05, 0.05)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "interpreter" in record.getMessage()
    assert "one process for each core" in record.getMessage()


def test_the_steps_must_be_consecutive():
    monitor = new_monitor()
    for _ in range(5 * STEPS_BEFORE_WARNING):
        step_of(monitor, 0.05, 0.05)
        step_of(monitor, 0.05, 0.10)
    assert not monitor.has_warned


def test_cpu_time_is_not_read_after_fast_steps():
    monitor = new_monitor()
    monitor.cpu_time = lambda: pytest.fail("read")
    for _ in range(3):
        step_of_wall_only(monitor, 0.001)


def step_of_wall_only(monitor: GilContentionMonitor, wall: float) -> None:
    started = monitor.start()
    monitor.wall_time.now += wall  # type: ignore[attr-defined]
    monitor.finish(started)


def test_runs_of_a_strategy_are_measured(monkeypatch):
    starts: list[int] = []
    monitor = GilContentionMonitor(2, wall_time=lambda: starts.append(1) or 0.0)
    monkeypatch.setattr("ringlet.strategy.api.mirrored_strategy.gil_contention_monitor", lambda: monitor)
    ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).run(lambda: None)
    assert len(starts) == 2
