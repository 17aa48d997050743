from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Sharding, shard, strict

HALVES = Sharding.tiled((2,))


@pytest.mark.parametrize("compare", [np.array_equal, np.array_equiv, np.allclose])
@pytest.mark.parametrize("other", [[1.0, 2.0, 3.0], [1.0, 2.0, 4.0], [1.0], 1.0])
def test_arrays_are_compared_as_a_whole(compare, other):
    whole = np.array([1.0, 2.0, 3.0])
    with strict():
        found = compare(shard(whole, HALVES), other)
    assert type(found) is bool
    assert found is bool(compare(whole, other))


def test_shapes_that_do_not_go_together_are_not_equal():
    x = shard(np.ones(3), HALVES)
    assert not np.array_equal(x, np.ones(2))
    assert not np.array_equiv(np.ones(2), x)


@pytest.mark.parametrize("equal_nan", [True, False])
def test_numbers_that_are_none_are_equal_if_asked_for(equal_nan):
    x = shard(np.array([1.0, np.nan]), HALVES)
    assert np.array_equal(x, x, equal_nan=equal_nan) is equal_nan
    assert np.allclose(x, x, equal_nan=equal_nan) is equal_nan


def test_text_is_equal_or_not():
    x = shard(np.array(["a", "b"]), HALVES)
    assert np.array_equal(x, x, equal_nan=True)
