"""Ranks are back to their quiet speed once several blocks of calls in a row are as fast as before."""

import math

from bench.after_busy_loops import seconds_until_back, trial_blocks

QUIET = [(0.1, 1.0, 10.0), (0.2, 5.0, 9.0), (0.3, 1.1, 10.0)]


def blocks(*seconds):
    return [(0.1 * number, each, 10 * each) for number, each in enumerate(seconds, 1)]


def test_one_fast_block_is_not_enough_and_one_slow_one_ends_a_row():
    assert seconds_until_back(QUIET, blocks(3, 1, 3, 1.4, 1.4, 1.4, 1.4, 1.4, 3), 1) == 0.4
    assert seconds_until_back(QUIET, blocks(3, 1, 1, 1, 1, 3), 1) == math.inf
    assert seconds_until_back(QUIET, blocks(1, 1, 1, 1), 1) == math.inf


def test_each_measure_has_its_own_limit():
    after = blocks(*[1.35] * 5)
    assert (seconds_until_back(QUIET, after, 1), seconds_until_back(QUIET, after, 2)) == (0.1, math.inf)


def test_a_trial_has_three_phases(monkeypatch):
    monkeypatch.setenv("RINGLET_RANK", "0")
    monkeypatch.setenv("RINGLET_NUM_RANKS", "1")
    phases = trial_blocks(0.01)
    assert len(phases) == 3
    assert all(end > 0 and call > 0 and loops > 0 for phase in phases for end, call, loops in phase)
