"""Weights of parts in the mean."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.data import Dataset
from ringlet.data.distribution.weighted_remainder import weights_of


@pytest.mark.parametrize(
    ("rows", "weights"),
    [([2, 2], [1, 1]), ([2, 1, 1, 1], [1.6, 0.8, 0.8, 0.8]), ([1, 0], [2, 0]), ([0, 0], [0, 0])],
)
def test_weights_are_rows_over_their_mean(rows, weights):
    assert weights_of(rows, sum(rows), len(rows)).values == tuple(weights)


def test_a_weighted_mean_over_replicas_is_the_mean_over_the_rows_of_all_steps():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    rows = np.arange(10.0)
    dataset = Dataset.from_tensor_slices(rows).batch(4)

    def step(part, weight):
        mean = part.mean() if len(part) else 0.0
        return weight * mean

    means = [
        strategy.reduce("MEAN", strategy.run(step, args=pair), axis=None)
        for pair in strategy.experimental_distribute_dataset(dataset, uneven="keep")
    ]
    assert means == pytest.approx([rows[:4].mean(), rows[4:8].mean(), rows[8:].mean()])


@pytest.mark.parametrize(
    "strategy", [ringlet.get_strategy(), ringlet.OneDeviceStrategy("CPU:0"), ringlet.MirroredStrategy(["CPU:0"])]
)
def test_one_replica_weighs_one(strategy):
    steps = list(strategy.experimental_distribute_dataset(Dataset.range(3).batch(2), uneven="keep"))
    assert [(step.tolist(), weight) for step, weight in steps] == [([0, 1], 1), ([2], 1)]
