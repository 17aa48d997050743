"""One process writes, and the others wait as they were told."""

from __future__ import annotations

import dataclasses

import pytest

import ringlet
from ringlet.train.options import CheckpointOptions, wait_for_chief, writes


def test_who_writes_is_told_or_else_the_strategy_tells():
    assert writes(None)
    assert writes(CheckpointOptions(is_chief=True))
    with ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        assert writes(CheckpointOptions())
        assert not writes(CheckpointOptions(is_chief=False))


def test_the_barrier_has_the_path_in_its_name_and_may_be_left_out():
    met = []
    wait_for_chief(CheckpointOptions(barrier=met.append), "runs/ckpt-1")
    wait_for_chief(CheckpointOptions(), "runs/ckpt-1")
    wait_for_chief(None, "runs/ckpt-1")
    assert met == ["checkpoint runs/ckpt-1"]


def test_options_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CheckpointOptions().is_chief = True
