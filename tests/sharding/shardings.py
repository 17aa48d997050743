"""Random shardings."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from ringlet.sharding import Sharding
from ringlet.sharding.layout.tile_assignment import SUBGROUPS

__all__ = ["shardings", "tilings"]


@st.composite
def tilings(draw: st.DrawFn, groups: tuple[str, ...] = SUBGROUPS) -> Sharding:
    """Tilings of up to 48 devices, in groups of some kinds."""
    dimensions = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(lambda d: 1 < math.prod(d) <= 48))
    kinds = draw(st.lists(st.sampled_from(groups), max_size=len(dimensions)))
    devices = draw(st.none() | st.permutations(range(math.prod(dimensions))))
    return Sharding.tiled(dimensions, devices, last_tile_dims=kinds)


def shardings() -> st.SearchStrategy[Sharding]:
    """Shardings of every kind."""
    simple = st.sampled_from([Sharding.replicated(), Sharding.manual(), Sharding.unknown(), Sharding.unreduced()])
    single = simple | tilings() | st.builds(Sharding.maximal, st.integers(0, 99))
    return single | st.lists(single, max_size=3).map(Sharding.of_tuple)
