"""Iota tile assignments: device lists written as a grid and the order of its axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Iota:
    """Devices 0, 1, 2, … in a grid, filled row by row, and the order in which its axes are read, the slowest first.

    openxla/xla, ``xla/xla_data.proto``, ``OpSharding``: ``iota_reshape_dims`` and ``iota_transpose_perm``.
    """

    reshape_dims: tuple[int, ...]
    transpose_perm: tuple[int, ...]

    @classmethod
    def of(cls, devices: Sequence[int]) -> Iota | None:
        """Return the grid with the fewest axes that lists devices in this order, or None."""
        order = np.asarray(devices, np.int64)
        sizes: list[int] = []
        strides: list[int] = []
        explained = 1  # number of leading devices covered by the axes found so far, the fastest first
        while explained < len(order) and order[0] == 0:
            heads = order[::explained]
            steps = np.flatnonzero(heads != heads[1] * np.arange(len(heads)))
            strides.append(int(heads[1]))
            sizes.append(int(steps[0]) if len(steps) else len(heads))
            explained *= sizes[-1]
        # The slowest axis of the grid has the largest stride.
        grid = sorted(range(len(sizes)), key=lambda axis: -strides[axis])
        found = cls(
            tuple(sizes[axis] for axis in grid) or (1,),
            tuple(grid.index(axis) for axis in reversed(range(len(sizes)))) or (0,),
        )
        return found if found.count == len(order) and found.devices == tuple(order.tolist()) else None

    @property
    def count(self) -> int:
        """Number of devices."""
        return math.prod(self.reshape_dims)

    @property
    def devices(self) -> tuple[int, ...]:
        """The devices in the order of the tile assignment."""
        grid = np.arange(self.count).reshape(self.reshape_dims)
        return tuple(grid.transpose(self.transpose_perm).reshape(-1).tolist())

    def __str__(self) -> str:
        text = f"<=[{','.join(map(str, self.reshape_dims))}]"
        if self.transpose_perm == tuple(range(len(self.transpose_perm))):
            return text
        return f"{text}T({','.join(map(str, self.transpose_perm))})"
