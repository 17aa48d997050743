"""Meshes of any shape, with holes, for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from ringlet.tpu import Topology
from ringlet.tpu.cost.link_traffic import Network

__all__ = ["mesh", "networks"]

Chip = tuple[int, int, int]


def mesh(
    *shape: int, wrap: bool | Sequence[bool] = False, without: Sequence[Chip] = (), generation: str | None = None
) -> Topology:
    """Return a mesh of chips (and devices per chip, if four numbers are given) of one task, without some chips."""
    sizes = [*shape, 1, 1, 1][: max(4, len(shape))]
    coordinates = np.stack(np.meshgrid(*map(range, sizes), indexing="ij"), -1).reshape(-1, 4)
    present = [place for place in coordinates.tolist() if tuple(place[:3]) not in set(without)]
    closes = [wrap] * 3 if isinstance(wrap, bool) else wrap
    devices = np.array(present, np.int32).reshape(1, -1, 4)
    return Topology(mesh_shape=sizes, device_coordinates=devices, wrap=closes, generation=generation)


def networks(most: int = 5) -> st.SearchStrategy[Network]:
    """Small networks of all kinds."""
    shapes = st.tuples(*[st.integers(1, most)] * 3)
    return st.builds(Network, shapes, st.tuples(*[st.booleans()] * 3))
