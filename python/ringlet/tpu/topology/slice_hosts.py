"""Positions of the devices of a modelled slice, and their hosts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.tpu.topology.generation import ChipShape

__all__ = ["coordinates_of_slice"]

IntArray = np.ndarray[Any, np.dtype[np.int32]]


def coordinates_of_slice(
    shape: ChipShape, task_shape: ChipShape, devices_per_chip: int, tasks_per_chip: int = 1
) -> IntArray:
    """Return the coordinates [task, device, coordinate] of a slice, x first; `tasks_per_chip` tasks share each chip."""
    tasks = [length // part for length, part in zip(shape, task_shape, strict=True)]
    # Axes of the grid: task z, y, x, then chip z, y, x, then core, fastest last.
    grid = np.indices((*tasks[::-1], *task_shape[::-1], devices_per_chip), np.int32)
    xyz = [grid[2 - axis] * task_shape[axis] + grid[5 - axis] for axis in range(3)]
    places = np.stack([*xyz, grid[6]], -1).reshape(
        tasks[0] * tasks[1] * tasks[2], -1, tasks_per_chip, devices_per_chip // tasks_per_chip, 4
    )
    coordinates: IntArray = places.transpose(0, 2, 1, 3, 4).reshape(len(places) * tasks_per_chip, -1, 4)
    return coordinates
