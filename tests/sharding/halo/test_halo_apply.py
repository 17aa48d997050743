from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import ShardedArray, Sharding, conv_general, explain, map_halo, max_pool, shard
from ringlet.sharding.halo.halo_apply import as_operand


def test_plain_arrays_give_plain_arrays():
    assert type(max_pool(np.ones((1, 4, 1)), 2)) is np.ndarray
    assert type(as_operand([1, 2])) is np.ndarray


def test_an_array_that_would_lose_its_mask_is_refused():
    masked = np.ma.masked_equal(np.ones((1, 4, 1)), 1)
    with pytest.raises(TypeError, match=r"would lose its mask: pass array\.filled\(0\)"):
        max_pool(masked, 2)


def test_sharded_arrays_give_sharded_arrays_in_one_operation_of_a_report():
    x = shard(np.ones((1, 1, 8)), Sharding.tiled((1, 1, 2)))
    with explain() as report:
        y = conv_general(x, np.ones((1, 1, 3)), 1, "SAME")
        map_halo(lambda part: part[..., 2:], y, (0, 0, 1))
    assert isinstance(y, ShardedArray)
    assert [(o.name, len(o.collectives)) for o in report.operations] == [("conv_general", 2), ("map_halo", 2)]


def test_an_error_names_the_device_whose_tile_raised_it():
    x = shard(np.arange(4.0), Sharding.tiled((2,)))

    def fail(part):
        if part[0] == 1:
            raise ZeroDivisionError
        return part

    with pytest.raises(ZeroDivisionError) as caught:
        map_halo(fail, x, 1)
    assert caught.value.__notes__ == ["in the work of device 1"]
