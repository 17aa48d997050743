"""Arrays in shared memory are timed beside live ones, which keep their values."""

import numpy as np
import pytest

from bench import shared_arrays


def test_each_number_of_live_arrays_is_timed(capsys):
    shared_arrays.main(["--live", "0,50", "--rounds", "1"])
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said[1:3]] == ["0", "50"]
    assert "an array of 64 B beside 50 others" in said[-1]


def test_a_live_array_that_is_overwritten_is_reported(monkeypatch):
    same = np.zeros(64, np.uint8)
    monkeypatch.setattr(shared_arrays._core, "empty_shared", lambda shape, dtype: same)
    with pytest.raises(AssertionError, match="live array 1 was overwritten"):
        shared_arrays.measure([0, 2], 64, 1)
