"""All layouts of an array on a mesh, and the pairs of them that tests use."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from ringlet.sharding.layout.layout import WHOLE, Cut, Layout

__all__ = ["MESHES", "layouts", "pairs"]

MESHES = [(2,), (3,), (4,), (2, 2), (8,), (4, 2), (2, 2, 2)]

# All pairs, where minutes do not count.
NIGHTLY = bool(os.environ.get("RINGLET_CI_NIGHTLY"))


@lru_cache
def layouts(mesh: tuple[int, ...], ndim: int) -> tuple[Layout, ...]:
    """Each axis of the mesh cuts one of the dimensions, numbers the parts of a partial array, or does nothing."""
    count = int(np.prod(mesh))
    index = np.unravel_index(np.arange(count), mesh)
    found = []
    for uses in itertools.product(["nothing", "parts", *range(ndim)], repeat=len(mesh)):
        cuts = []
        for use in ["parts", *range(ndim)]:
            axes = [axis for axis, what in enumerate(uses) if what == use]
            sizes = [mesh[axis] for axis in axes]
            tile = np.ravel_multi_index([index[axis] for axis in axes], sizes) if axes else ()
            cuts.append(Cut(int(np.prod(sizes)), tuple(map(int, tile))) if axes else WHOLE)
        found.append(Layout(count, tuple(cuts[1:]), parts=cuts[0]))
    return (*found, Layout(count, (WHOLE,) * ndim, only=count - 1), Layout(count, (WHOLE,) * ndim, only=0))


def pairs(mesh: tuple[int, ...], ndim: int, most: int) -> Iterator[tuple[Layout, Layout]]:
    """Yield all pairs of layouts in nightly tests, else `most`, evenly spread."""
    every = layouts(mesh, ndim)
    count = len(every) ** 2
    step = 1 if NIGHTLY else -(-count // most)
    step += step > 1 and len(every) % step == 0  # so that targets are not always the same few
    for number in range(0, count, step):
        yield every[number // len(every)], every[number % len(every)]
