"""The block computes the same on any number of devices, and sends what tensor parallelism has to."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from examples import tensor_parallel_transformer as example
from ringlet.sharding import Sharding, explain, mode, strict

X = np.random.default_rng(1).standard_normal((2, 16, example.WIDTH)).astype(np.float32)
WEIGHTS = example.initial_weights()
EXPECTED = example.block(X, WEIGHTS)


@pytest.mark.parametrize("run", [example.run_outside, example.run_in_strategy])
@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_the_block_is_that_of_one_device(run, devices):
    with strict():
        result = run(X, WEIGHTS, devices)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result._gathered(), EXPECTED, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_a_block_sums_up_twice_and_sends_nothing_else(devices):
    with explain() as report:
        result = example.run_outside(X, WEIGHTS, devices)
        result.reshard(Sharding.replicated(devices))
    assert report.counts == {"all-reduce": 2}
    assert report.nbytes == 2 * 2 * (devices - 1) * X.nbytes


def test_devices_with_memory_of_their_own_come_to_the_same_bits():
    shared = example.run_outside(X, WEIGHTS, 4)._gathered()
    with mode("copy"):
        np.testing.assert_array_equal(example.run_outside(X, WEIGHTS, 4)._gathered(), shared)


def test_no_position_takes_anything_from_those_behind_it():
    changed = X.copy()
    changed[:, 9:] += 1
    np.testing.assert_array_equal(example.block(changed, WEIGHTS)[:, :9], EXPECTED[:, :9])


@pytest.mark.slow
def test_the_script_runs():
    command = [sys.executable, example.__file__, "--devices", "2", "--explain"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "run_in_strategy  2 devices: off by " in done.stdout
