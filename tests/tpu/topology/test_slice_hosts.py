"""Devices of a modelled slice are numbered task by task."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu.topology.topology import coordinates_of_slice

SMALL = st.tuples(*[st.integers(1, 3)] * 3)


@given(SMALL, SMALL, st.integers(1, 2))
def test_tasks_and_their_chips_go_along_x_first(tasks, task_shape, cores):
    shape = tuple(a * b for a, b in zip(tasks, task_shape, strict=True))
    expected = [
        [
            [tx * task_shape[0] + x, ty * task_shape[1] + y, tz * task_shape[2] + z, core]
            for z in range(task_shape[2])
            for y in range(task_shape[1])
            for x in range(task_shape[0])
            for core in range(cores)
        ]
        for tz in range(tasks[2])
        for ty in range(tasks[1])
        for tx in range(tasks[0])
    ]
    found = coordinates_of_slice(shape, task_shape, cores)
    assert found.dtype == np.int32
    assert found.tolist() == expected


@pytest.mark.parametrize("tasks_per_chip", [1, 2])
def test_tasks_that_share_chips_have_one_core_of_each(tasks_per_chip):
    found = coordinates_of_slice((2, 1, 1), (2, 1, 1), 2, tasks_per_chip)
    assert found.shape == (tasks_per_chip, 4 // tasks_per_chip, 4)
    if tasks_per_chip == 2:
        assert found[1].tolist() == [[0, 0, 0, 1], [1, 0, 0, 1]]
