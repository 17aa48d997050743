"""The network learns the same from images that are cut."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from examples import spatial_cnn as example
from ringlet.sharding import explain, mode, strict

IMAGES, LABELS = example.stripes(6)
KERNELS = example.initial_kernels()
LOSSES, EXPECTED = example.train(IMAGES, LABELS, KERNELS, 2)


def assert_close(losses, kernels):
    np.testing.assert_allclose(losses, LOSSES, rtol=1e-12)
    for kernel, expected in zip(kernels, EXPECTED, strict=True):
        np.testing.assert_allclose(np.asarray(kernel), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("run", [example.run_outside, example.run_in_strategy])
@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_training_comes_to_the_kernels_of_one_device(run, devices):
    with strict():
        losses, kernels = run(IMAGES, LABELS, 2, devices)
    assert_close(losses, kernels)


def test_devices_with_memory_of_their_own_come_to_the_same_bits():
    shared = example.run_outside(IMAGES, LABELS, 1, 8)
    with mode("copy"):
        apart = example.run_outside(IMAGES, LABELS, 1, 8)
    assert apart[0] == shared[0]
    for one, other in zip(apart[1], shared[1], strict=True):
        np.testing.assert_array_equal(one._gathered(), other._gathered())


def test_edges_of_tiles_and_sums_are_all_that_is_sent():
    with explain() as report:
        example.run_outside(IMAGES, LABELS, 1, 8)
    assert set(report.counts) <= {"collective-permute", "all-reduce"}
    assert report.gathers == []


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_gradients_are_the_slopes_of_the_loss(layer):
    direction = np.random.default_rng(1).standard_normal(KERNELS[layer].shape)
    step = 1e-6

    def loss(distance):
        moved = list(KERNELS)
        moved[layer] = moved[layer] + distance * direction
        return example.train_step(IMAGES, LABELS, moved)[0]

    gradient = (KERNELS[layer] - example.train_step(IMAGES, LABELS, KERNELS)[1][layer]) / example.RATE
    np.testing.assert_allclose((gradient * direction).sum(), (loss(step) - loss(-step)) / (2 * step), rtol=1e-6)


def test_it_learns_to_tell_stripes_apart():
    losses, kernels = example.train(*example.stripes(24), KERNELS, 40)
    assert losses[-1] < losses[0] / 3
    images, labels = example.stripes(12, seed=5)
    assert (np.argmax(example.forward(images, kernels)[0], axis=1) == labels).mean() > 0.9


@pytest.mark.slow
def test_the_script_runs():
    command = [sys.executable, example.__file__, "--steps", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("off by") == 8


def test_a_training_has_a_step(capsys):
    with pytest.raises(SystemExit):
        example.main(["--steps", "0"])
    assert "--steps is at least 1, got 0" in capsys.readouterr().err
