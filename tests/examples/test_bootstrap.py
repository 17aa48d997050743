"""The bootstrap of medians: its bits do not depend on the number of replicas, its intervals hold the difference."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from examples import bootstrap


@pytest.fixture(scope="module")
def groups():
    return bootstrap.load_groups()[1]


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_any_number_of_replicas_gives_the_same_bits(groups, replicas):
    strategy = ringlet.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
    assert np.array_equal(bootstrap.bootstrap(strategy, groups, 4), bootstrap.map_blocks(groups, range(4)))


def test_the_resamples_lie_around_the_difference_of_the_medians(groups):
    differences = bootstrap.map_blocks(groups, range(4))
    assert differences.shape == (4, bootstrap.BLOCK, 30)
    low, high = np.quantile(differences, [0.005, 0.995], axis=(0, 1))
    observed = np.median(groups[0], axis=1) - np.median(groups[1], axis=1)
    assert ((low <= observed) & (observed <= high)).all()


def test_the_program_reports_intervals_and_the_speed_up_without_a_warning(capsys, caplog):
    bootstrap.main(["--resamples", "200"])
    printed = capsys.readouterr().out
    assert "mean radius                  17.33      12.2" in printed
    assert "256 resamples, equal bits: True" in printed
    assert "speed-up" in printed
    assert not caplog.records
