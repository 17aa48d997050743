from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Sharding, explain, shard, strict

ROWS = Sharding.tiled((2, 1))


@pytest.mark.parametrize(
    "ask",
    [
        np.shape,
        np.ndim,
        np.size,
        lambda x: np.size(x, 1),
        np.iscomplexobj,
        np.isrealobj,
        np.common_type,
        lambda x: np.result_type(x, 2, np.int8),
        lambda x: np.can_cast(x, np.float32),
        np.min_scalar_type,
        lambda x: np.einsum_path("ij,jk,kl", x, x, x)[0],
        np.tril_indices_from,
        np.array2string,
        np.array_str,
    ],
)
def test_questions_are_answered_without_a_gather(ask):
    whole = np.arange(9.0).reshape(3, 3)
    with strict(), explain() as report:
        found = ask(shard(whole, ROWS))
    np.testing.assert_equal(found, ask(whole))
    assert report.operations == []


def test_arrays_share_memory_if_any_of_their_tiles_do():
    x = shard(np.arange(4.0).reshape(2, 2), ROWS)
    assert np.shares_memory(x, x.T)
    assert np.may_share_memory(x._tile(1), x)
    assert not np.shares_memory(x, x.copy())
