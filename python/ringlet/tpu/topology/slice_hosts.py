"""Where the devices of a modelled slice sit, and which host has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.tpu.topology.generation import ChipShape

__all__ = ["coordinates_of_slice"]

IntArray = np.ndarray[Any, np.dtype[np.int32]]


def coordinates_of_slice(
    shape: ChipShape, task_shape: ChipShape, devices_per_chip: int, tasks_per_chip: int = 1
) -> IntArray:
    """Number the devices of a slice as real ones are: task by task, and chip by chip in each of them.

    Tasks go along x first, then y, then z; so do the chips of a task; the devices of a chip follow each other.

    Parameters
    ----------
    shape : tuple of int
        Chips of the slice along x, y and z.
    task_shape : tuple of int
        Chips of one task; each length divides that of the slice.
    devices_per_chip : int
    tasks_per_chip : int
        How many tasks share each chip; each of them has as many of its devices.

    Returns
    -------
    ndarray of int32, shape (tasks, devices per task, 4)
        Coordinates x, y, z and core.

    Examples
    --------
    >>> coordinates_of_slice((4, 2, 1), (2, 2, 1), 1)[1].tolist()
    [[2, 0, 0, 0], [3, 0, 0, 0], [2, 1, 0, 0], [3, 1, 0, 0]]
    """
    tasks = [length // part for length, part in zip(shape, task_shape, strict=True)]
    # Axes of the grid: task z, y, x, then chip z, y, x, then core; the last one is the fastest.
    grid = np.indices((*tasks[::-1], *task_shape[::-1], devices_per_chip), np.int32)
    xyz = [grid[2 - axis] * task_shape[axis] + grid[5 - axis] for axis in range(3)]
    places = np.stack([*xyz, grid[6]], -1).reshape(
        tasks[0] * tasks[1] * tasks[2], -1, tasks_per_chip, devices_per_chip // tasks_per_chip, 4
    )
    coordinates: IntArray = places.transpose(0, 2, 1, 3, 4).reshape(len(places) * tasks_per_chip, -1, 4)
    return coordinates
