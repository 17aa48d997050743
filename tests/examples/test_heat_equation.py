"""Heat spreads alike however the plate is cut."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from examples import heat_equation as example
from ringlet.sharding import explain, mode, strict

PLATE, IS_KEPT = example.plate_of(16)
EXPECTED = example.spread(PLATE, IS_KEPT, 12)


@pytest.mark.parametrize("run", [example.run_outside, example.run_in_strategy])
@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_the_plate_has_the_bits_of_one_device(run, devices):
    with strict():
        result = run(PLATE, IS_KEPT, 12, devices)
    np.testing.assert_array_equal(result._gathered(), EXPECTED)


def test_devices_with_memory_of_their_own_come_to_the_same_bits():
    with mode("copy"), strict():
        np.testing.assert_array_equal(example.run_outside(PLATE, IS_KEPT, 12, 8)._gathered(), EXPECTED)


def test_neighbours_send_one_row_or_column_in_each_direction():
    with explain() as report:
        example.run_outside(PLATE, IS_KEPT, 3, 4)
    assert report.counts == {"collective-permute": 12}
    # Each of the four tiles of 8 x 8 sends an edge to the right, to the left, up and down.
    assert report.nbytes == 3 * 4 * 4 * 8 * 8


def test_the_plate_warms_up_and_nowhere_beyond_its_edges():
    assert (EXPECTED >= PLATE).all()
    assert EXPECTED.max() == 100
    assert (EXPECTED[1:5, 8] > 0).all()


@pytest.mark.slow
def test_the_script_runs():
    command = [sys.executable, example.__file__, "--size", "16", "--steps", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("the same bits") == 8


def test_a_size_that_it_cannot_draw_is_refused(capsys):
    with pytest.raises(SystemExit):
        example.main(["--size", "8"])
    assert "--size is a multiple of 16, got 8" in capsys.readouterr().err
