"""The loop that a reader copies from learns, and computes the same on any number of replicas."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from examples import training_loop


def test_it_learns_to_tell_digits_apart():
    assert training_loop.train(2, epochs=4)[-1] > 0.85


def test_any_number_of_replicas_comes_to_the_same(capsys):
    accuracies = [training_loop.train(replicas, epochs=2) for replicas in (1, 3)]
    np.testing.assert_array_equal(*accuracies)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == lines[2:]


@pytest.mark.slow
def test_the_script_runs():
    command = [sys.executable, training_loop.__file__, "--replicas", "2", "--epochs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("epoch  1  loss ")
