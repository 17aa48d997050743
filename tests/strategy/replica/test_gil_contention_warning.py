"""The hint to programs whose replicas take turns in the interpreter: given once, and only to them."""

from __future__ import annotations

import logging

import pytest

import ringlet
from ringlet.strategy.replica.gil_contention_warning import STEPS_BEFORE_HINT, SlowStepHint


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def step_of(hint: SlowStepHint, wall: float, cpu: float) -> None:
    started = hint.start()
    hint.wall_time.now += wall  # type: ignore[attr-defined]
    hint.cpu_time.now += cpu  # type: ignore[attr-defined]
    hint.finish(started)


def new_hint(cores: int = 2, load: float = 1.0) -> SlowStepHint:
    return SlowStepHint(cores, wall_time=Clock(), cpu_time=Clock(), machine_load=lambda: load)


@pytest.mark.parametrize(
    ("wall", "cpu", "cores", "is_given"),
    [
        # seconds of a step, CPU seconds in it
        (0.05, 0.05, 2, True),
        (0.05, 0.06, 2, True),
        (0.05, 0.10, 2, False),  # both cores are busy
        (0.05, 0.01, 2, False),  # the step waits for something else
        (0.01, 0.01, 2, False),  # a fast step
        (0.05, 0.05, 1, False),  # there is nothing to gain
    ],
)
def test_it_is_for_slow_steps_that_keep_one_core_busy(wall, cpu, cores, is_given):
    hint = new_hint(cores)
    for _ in range(STEPS_BEFORE_HINT + 1):
        step_of(hint, wall, cpu)
    assert hint.is_given is is_given


def test_it_is_withheld_while_others_want_the_cores():
    hint = new_hint(load=3.5)
    for _ in range(5 * STEPS_BEFORE_HINT):
        step_of(hint, 0.05, 0.05)
    assert not hint.is_given


def test_it_is_given_once_as_a_warning(caplog):
    hint = new_hint()
    for _ in range(5 * STEPS_BEFORE_HINT):
        step_of(hint, 0.05, 0.05)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "interpreter" in record.getMessage()
    assert "one process for each core" in record.getMessage()


def test_steps_must_follow_each_other():
    hint = new_hint()
    for _ in range(5 * STEPS_BEFORE_HINT):
        step_of(hint, 0.05, 0.05)
        step_of(hint, 0.05, 0.10)
    assert not hint.is_given


def test_cpu_time_is_not_asked_for_after_fast_steps():
    hint = new_hint()
    hint.cpu_time = lambda: pytest.fail("asked")
    for _ in range(3):
        step_of_wall_only(hint, 0.001)


def step_of_wall_only(hint: SlowStepHint, wall: float) -> None:
    started = hint.start()
    hint.wall_time.now += wall  # type: ignore[attr-defined]
    hint.finish(started)


def test_runs_of_a_strategy_are_watched(monkeypatch):
    starts: list[int] = []
    watcher = SlowStepHint(2, wall_time=lambda: starts.append(1) or 0.0)
    monkeypatch.setattr("ringlet.strategy.api.mirrored_strategy.slow_step_hint", lambda: watcher)
    ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).run(lambda: None)
    assert len(starts) == 2
