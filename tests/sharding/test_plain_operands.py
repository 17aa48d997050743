"""Functions of plain arrays that write to a sharded one: the result and the errors are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Sharding, explain, mode, shard

# NumPy 2.5 deprecates np.fix.
pytestmark = pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")

X = np.arange(16.0).reshape(4, 4)

# What gives a result of the shape of X.
CALLS = {
    "add": lambda out: np.add(X, X, out=out),
    "add where": lambda out: np.add(X, X, out=out, where=X > 3),
    "choose": lambda out: np.choose((X > 3).astype(int), [X, -X], out=out),
    "clip": lambda out: np.clip(X, 1, 2, out=out),
    "clip where": lambda out: np.clip(X, 1, 2, out=out, where=X > 3),
    "compress": lambda out: np.compress([1] * 4, X, axis=0, out=out),
    "concatenate": lambda out: np.concatenate([X[:3], X[3:]], out=out),
    "concatenate axis": lambda out: np.concatenate([X[:, :1], X[:, 1:]], 1, out),
    "cumsum": lambda out: np.cumsum(X, 0, out=out),
    "dot": lambda out: np.dot(X, X, out=out),
    "einsum": lambda out: np.einsum("ij,jk->ik", X, X, out=out),
    "fix": lambda out: np.fix(X / 3, out=out),
    "matmul": lambda out: np.matmul(X, X, out=out),
    "multi_dot": lambda out: np.linalg.multi_dot([X, X, X], out=out),
    "outer": lambda out: np.outer(X[0], X[1], out=out),
    "round": lambda out: np.round(X / 3, out=out),
    "stack": lambda out: np.stack([X[0]] * 4, out=out),
    "sum": lambda out: np.sum(np.stack([X] * 3), axis=0, out=out),
    "take": lambda out: np.take(X, [0, 3, 3, 1], axis=1, out=out),
}


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("tiles", [(4, 1), (1, 2), (1, 1)])
@pytest.mark.parametrize("name", CALLS)
def test_a_sharded_out_gets_what_numpy_computes(name, tiles, memory):
    call = CALLS[name]
    expected = np.full((4, 4), 7.0)
    call(expected)
    with mode(memory):
        out = shard(np.full((4, 4), 7.0), Sharding.tiled(tiles))
        with explain() as report:
            assert call(out) is out
        np.testing.assert_array_equal(np.asarray(out), expected)
    assert report.nbytes == 0 or "where" in name


@pytest.mark.parametrize("name", [name for name in CALLS if "where" not in name])
def test_a_sharded_out_of_another_shape_is_refused(name):
    out = shard(np.zeros((4, 3)), Sharding.tiled((4, 1)))
    with pytest.raises(ValueError, match=r"shape|dimension|size|broadcast|does not match"):
        CALLS[name](out)
    assert not np.asarray(out).any()


def test_a_sharded_out_of_a_smaller_kind_of_numbers_is_refused():
    out = shard(np.zeros((4, 4), int), Sharding.tiled((4, 1)))
    for name in ("matmul", "concatenate", "clip", "einsum"):
        with pytest.raises(TypeError, match=r"Cannot cast|could not be cast"):
            CALLS[name](out)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: np.add(x, 1, out=out),
        lambda x, out: np.divmod(x, 2, out=(out, None)),
        lambda x, out: np.cumsum(x, 0, out=out),
        lambda x, out: np.take(x, [0, 1, 2, 3], 0, out=out),
        lambda x, out: np.maximum.accumulate(x, 0, out=out),
    ],
)
def test_a_plain_out_that_is_read_only_is_refused(call):
    out = np.broadcast_to(np.zeros(()), (4, 4))
    with pytest.raises(ValueError, match=r"read-only|writeable"):
        call(X, out)
    with pytest.raises(ValueError, match="output array is read-only"):
        call(shard(X, Sharding.tiled((4, 1))), out)
