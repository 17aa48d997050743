from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import GatherWarning
from ringlet.sharding import Mesh, ShardedArray, Sharding, explain, mode, shard

ROWS, COLUMNS = Sharding.tiled((2, 1)), Sharding.tiled((1, 2))
A, B = np.arange(12).reshape(4, 3), np.arange(6).reshape(3, 2)


@pytest.mark.parametrize("left", [True, False])
def test_an_array_that_is_not_sharded_may_be_on_either_side(left):
    result = shard(A, ROWS) @ B if left else A @ shard(B, COLUMNS)
    assert isinstance(result, ShardedArray)
    np.testing.assert_array_equal(np.asarray(result), A @ B)


def test_out_may_be_one_of_the_factors():
    x = shard(np.arange(16).reshape(4, 4), ROWS)
    square = np.arange(16).reshape(4, 4)
    assert np.matmul(x, x, out=x) is x
    np.testing.assert_array_equal(np.asarray(x), square @ square)


def test_products_in_place_keep_the_array():
    x = y = shard(np.arange(4.0).reshape(2, 2), ROWS)
    x @= np.eye(2) * 2
    assert x is y
    np.testing.assert_array_equal(np.asarray(x), np.arange(4.0).reshape(2, 2) * 2)


def test_the_dtype_may_be_asked_for():
    x = shard(A.astype("float32"), COLUMNS)
    assert np.matmul(x, B.astype("float32"), dtype="float64").dtype == "float64"
    with pytest.raises(TypeError, match="matmul"):
        np.matmul(x, B, dtype="int64")


@pytest.mark.parametrize(
    "axes", [[(0, 1), (0, 1), (0, 1)], [(1, 2), (0, 2), (2, 0)], [(-1, -3), (2, 1), (1, 2)]], ids=str
)
def test_matrices_may_lie_along_any_axes(axes):
    x = np.arange(27).reshape(3, 3, 3)
    result = np.matmul(shard(x, Sharding.tiled((3, 1, 1))), x, axes=axes)
    np.testing.assert_array_equal(np.asarray(result), np.matmul(x, x, axes=axes))


@pytest.mark.parametrize(
    "wrong", [{"axes": [(0, 7), (0, 1), (0, 1)]}, {"axes": [0]}, {"casting": "nonsense"}, {"no": 1}]
)
def test_wrong_arguments_are_refused_as_by_numpy(wrong):
    with pytest.raises(Exception) as expected:  # noqa: PT011  # whatever it is
        np.matmul(A, B, **wrong)
    with pytest.raises(type(expected.value)):
        np.matmul(shard(A, ROWS), B, **wrong)


@pytest.mark.skipif(not hasattr(np, "vecdot"), reason="came with NumPy 2.0")
def test_vecdot_sums_along_any_axis_and_keeps_dimensions_by_gathering():
    x = shard(A, COLUMNS)
    np.testing.assert_array_equal(np.asarray(np.vecdot(x, A, axis=0)), np.vecdot(A, A, axis=0))
    np.testing.assert_array_equal(np.asarray(np.linalg.vecdot(x, A)), np.vecdot(A, A))
    with pytest.warns(GatherWarning):
        kept = np.vecdot(x, A, keepdims=True)
    np.testing.assert_array_equal(kept, np.vecdot(A, A, keepdims=True))


def test_scalars_are_refused():
    with pytest.raises(ValueError, match="does not have enough dimensions"):
        shard(A, ROWS) @ 2


def test_a_batch_is_computed_where_it_is():
    x = shard(np.arange(24.0).reshape(4, 2, 3), Sharding.tiled((4, 1, 1)))
    with explain() as report:
        result = x @ np.ones((3, 5))
    assert (report.nbytes, result.sharding) == (0, x.sharding)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(8, 24, 6), (64, 64, 64), (4, 1, 2)])
def test_products_of_small_tiles_have_the_same_bits_in_memory_of_their_own(shape, dtype):
    rows, inner, columns = shape
    rng, mesh = np.random.default_rng(0), Mesh({"x": 4, "y": 2})
    a, b = (rng.normal(size=size).astype(dtype) for size in ((rows, inner), (inner, columns)))
    for cuts in ((("x", None), (None, "y")), ((None, None), (None, "y")), ((None, "y"), ("y", None))):
        bits = []
        for memory in ("shared", "copy"):
            with mode(memory):
                x, y = (shard(array, mesh.sharding(*cut)) for array, cut in zip((a, b), cuts, strict=True))
                bits.append(np.asarray(x @ y).tobytes())
        assert bits[0] == bits[1]


def test_a_product_with_an_array_of_one_device_has_the_layout_that_explain_shows():
    def partial():
        return shard(np.ones((4, 8)), Sharding.tiled((1, 4))) @ shard(np.ones((8, 4)), Sharding.tiled((4, 1)))

    x = shard(np.ones((4, 4)), Sharding.maximal(2, 4))
    plain = partial() @ x
    with explain() as report:
        explained = partial() @ x
    assert report.counts["broadcast"] == 1
    assert plain.sharding == explained.sharding
