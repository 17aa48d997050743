from __future__ import annotations

import numpy as np
import pytest

from ringlet.collectives import Op
from ringlet.sharding import Sharding, explain, mode, shard
from ringlet.sharding.creation import place
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.sharding.products.contraction import contract, dtype_of, operand, refused_by
from ringlet.testing import run_on_ranks
from tests.sharding.sweep import outcome

# A mesh of 4 by 2 devices: along x, along y, along neither.
X_ROWS = Sharding.tiled((4, 1, 2), last_tile_dims=["replicated"])
X_COLUMNS = Sharding.tiled((1, 4, 2), last_tile_dims=["replicated"])
X_BY_Y = Sharding.tiled((4, 2))
REPLICATED = Sharding.replicated(8)


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        # of (8, 16) by (16, 8); what combining the product sends
        (X_ROWS, REPLICATED, []),
        (X_COLUMNS, X_ROWS, ["all-reduce"]),
        (X_ROWS, X_COLUMNS, ["all-gather"]),
        (X_BY_Y, X_BY_Y, ["all-gather", "all-gather"]),
    ],
)
def test_products_of_matrices_send_what_their_case_says(a, b, kinds):
    one, other = np.arange(128.0).reshape(8, 16), np.arange(128.0).reshape(16, 8)
    with explain() as report:
        product = shard(one, a) @ shard(other, b)
        total = np.asarray(product)
    assert [c.kind for o in report.operations[:1] for c in o.collectives] == [k for k in kinds if k != "all-reduce"]
    assert product._layout.is_partial == ("all-reduce" in kinds)
    np.testing.assert_array_equal(total, one @ other)


def test_a_product_that_is_wanted_in_tiles_is_reduced_and_scattered():
    a, b = shard(np.ones((8, 16)), Sharding.tiled((1, 4))), shard(np.ones((16, 8)), Sharding.tiled((4, 1)))
    with explain() as report:
        wanted = (a @ b).reshard(Sharding.tiled((1, 4)))
    assert [c.kind for o in report.operations for c in o.collectives] == ["reduce-scatter"]
    np.testing.assert_array_equal(np.asarray(wanted), np.full((8, 8), 16.0))


def test_booleans_are_combined_by_or():
    a = np.random.default_rng(0).random((4, 64)) < 0.1
    product = shard(a, Sharding.tiled((1, 4))) @ a.T
    assert product._combine is Op.OR
    np.testing.assert_array_equal(np.asarray(product), a @ a.T)


def test_objects_are_added_by_themselves():
    fractions = np.array([[1, 2], [3, 4]], object)
    x = shard(fractions, Sharding.tiled((1, 2)))
    np.testing.assert_array_equal(np.asarray(x @ fractions), fractions @ fractions)


def test_a_product_of_a_partial_array_is_partial_as_it_is():
    a, b = shard(np.ones((2, 64)), Sharding.tiled((1, 4))), shard(np.ones((64, 64)), Sharding.tiled((4, 1)))
    chain = (a @ b) @ np.ones((64, 2))
    assert chain._layout.is_partial
    np.testing.assert_array_equal(np.asarray(chain), np.full((2, 2), 64.0 * 64))


def test_integers_wrap_as_they_do_untiled():
    x = np.full((4, 4), 100, np.int8)
    np.testing.assert_array_equal(np.asarray(shard(x, Sharding.tiled((1, 4))) @ x), x @ x)


def test_repeated_dimensions_are_sliced_where_they_are():
    x = shard(np.ones((1, 3)), Sharding.replicated(2))
    result = contract("outer", [x, np.ones((2, 3))], (("i", "j"), ("i", "j"), ("i", "j")), float)
    np.testing.assert_array_equal(np.asarray(result), np.ones((2, 3)))


def test_what_numpy_refuses_is_refused_in_its_words():
    x = shard(np.ones((2, 3)), Sharding.tiled((2, 1)))
    for refused in (lambda a: a @ a, lambda a: np.dot(a, a), lambda a: np.einsum("ij,jk", a, a)):
        expected = outcome(lambda refused=refused: refused(np.ones((2, 3))))
        found = outcome(lambda refused=refused: refused(x))
        assert (type(found), str(found)) == (ValueError, str(expected))


def test_a_refusal_that_numpy_does_not_share_says_what_was_given():
    assert "[(2,), (2,)]" in str(refused_by(np.multiply, np.ones(2), np.ones(2)))


def test_numpy_tells_the_dtype_of_a_result():
    assert dtype_of(np.dot, (np.dtype("int8"), np.dtype("float16")), (2, 2)) == "float16"
    with pytest.raises(TypeError):
        dtype_of(np.matmul, (np.dtype("U1"), np.dtype("float64")), (2, 2))


def test_lists_are_operands():
    np.testing.assert_array_equal(operand([1, 2]), np.array([1, 2]))


@pytest.mark.parametrize(
    ("a", "b"), [("x_", "_y"), ("_x", "__"), ("_x", "x_"), ("x_", "_x"), ("xy", "xy"), ("__", "y_")]
)
def test_products_are_the_same_bits_in_any_memory(a, b):
    one, other = np.random.default_rng(0).normal(size=(2, 13, 13))
    axes = {"_": WHOLE, "x": Cut(2, (0, 0, 1, 1)), "y": Cut(2, (0, 1, 0, 1))}
    layouts = [Layout(4, tuple(axes[name] for name in names)) for names in (a, b)]

    def product(group):
        x, y = (place(array, layout, group) for array, layout in zip((one, other), layouts, strict=True))
        found = x @ y
        return np.asarray(np.einsum("ij,jk", found, y))

    shared = product(DeviceGroup.of(4))
    with mode("copy"):
        apart = product(DeviceGroup.of(4))
    processes = run_on_ranks(2, lambda member: product(DeviceGroup(4, tuple("abcd"), member, (0, 0, 1, 1))))
    for found in (apart, *processes):
        np.testing.assert_array_equal(found, shared)
    np.testing.assert_allclose(shared, one @ other @ other, rtol=1e-12, atol=1e-12)
