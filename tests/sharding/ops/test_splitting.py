from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Sharding, shard

ROWS = Sharding.tiled((4, 1))


def test_parts_are_slices_in_the_same_tiles():
    parts = np.array_split(shard(np.arange(20).reshape(10, 2), ROWS), 3)
    assert [part.shape for part in parts] == [(4, 2), (3, 2), (3, 2)]
    assert {part.sharding for part in parts} == {ROWS}


@pytest.mark.skipif(not hasattr(np, "unstack"), reason="a function of NumPy 2.1")
def test_an_array_is_taken_apart():
    rows = np.unstack(shard(np.arange(6).reshape(2, 3), Sharding.tiled((1, 3))), axis=1)
    assert [row.tolist() for row in map(np.asarray, rows)] == [[0, 3], [1, 4], [2, 5]]


def test_unequal_parts_are_refused():
    with pytest.raises(ValueError, match="equal division"):
        np.vsplit(shard(np.zeros((10, 2)), ROWS), 3)
