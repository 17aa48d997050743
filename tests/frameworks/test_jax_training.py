"""The example with JAX learns, and computes the same on any number of replicas."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from tests.frameworks.libraries import library

jax = library("jax")
library("sklearn")

from examples import jax_training  # noqa: E402 - needs the libraries above


def test_it_learns_to_tell_digits_apart():
    weights, accuracies = jax_training.train(2, epochs=5)
    assert accuracies[-1] > 0.9
    assert all(isinstance(weight, jax.Array) for weight in weights.values())


def test_any_number_of_replicas_comes_to_the_same():
    (one, _), (three, _) = (jax_training.train(replicas, epochs=1) for replicas in (1, 3))
    for name, weight in one.items():
        np.testing.assert_allclose(weight, three[name], atol=1e-3)


def test_the_script_runs():
    command = [sys.executable, jax_training.__file__, "--epochs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("epoch  1  loss ")
