"""Norms, beyond what the sweep of operations tries."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Sharding, explain, shard, strict

WHOLE = np.arange(-10.0, 14.0).reshape(2, 4, 3)


@pytest.fixture
def x():
    return shard(WHOLE, Sharding.tiled((2, 2, 2)))


def test_the_norm_of_an_array_of_any_rank_is_that_of_all_its_elements(x):
    with explain() as report:
        found = np.linalg.norm(x)
    assert [sent.kind for each in report.operations for sent in each.collectives] == ["all-reduce"]
    assert float(found) == pytest.approx(np.linalg.norm(WHOLE), rel=1e-15)


@pytest.mark.skipif(not hasattr(np.linalg, "vector_norm"), reason="NumPy has it from 2.0 on")
def test_vector_norms_and_matrix_norms_take_their_own_axes(x):
    for order in (1, 2, np.inf, 3):
        expected = np.linalg.vector_norm(WHOLE, axis=(0, 2), ord=order)
        np.testing.assert_allclose(np.asarray(np.linalg.vector_norm(x, axis=(0, 2), ord=order)), expected)
    for order in ("fro", 1, -1, np.inf):
        expected = np.linalg.matrix_norm(WHOLE, ord=order, keepdims=True)
        np.testing.assert_allclose(np.asarray(np.linalg.matrix_norm(x, ord=order, keepdims=True)), expected)


@pytest.mark.parametrize("order", [2, -2, "nuc"])
@pytest.mark.parametrize("axis", [(1, 2), (2, 0)])
def test_norms_of_singular_values_are_computed_where_matrices_are(x, order, axis):
    with strict():
        found = np.linalg.norm(x, order, axis=axis).numpy()
    np.testing.assert_allclose(found, np.linalg.norm(WHOLE, order, axis=axis))
    kept = np.linalg.norm(x, order, axis=axis, keepdims=True)
    np.testing.assert_allclose(kept, np.linalg.norm(WHOLE, order, axis=axis, keepdims=True))


@pytest.mark.parametrize(
    ("order", "axis", "message"),
    [("fro", 0, "Invalid norm order|valid for vectors"), (1, None, "Improper number"), (5, (0, 1), "Invalid norm")],
)
def test_what_numpy_refuses_is_refused_alike(x, order, axis, message):
    with pytest.raises(ValueError, match=message):
        np.linalg.norm(x, order, axis)


@pytest.mark.parametrize("order", [None, 0, 1, 3, np.inf, -np.inf])
def test_norms_are_of_what_the_parts_of_a_partial_array_add_up_to(order):
    left = np.arange(-24.0, 24.0).reshape(2, 24)
    product = shard(left, Sharding.tiled((1, 2))) @ shard(left.T, Sharding.tiled((2, 1)))
    assert product._layout.is_partial
    np.testing.assert_allclose(
        np.asarray(np.linalg.norm(product, order, axis=0)), np.linalg.norm(left @ left.T, order, axis=0)
    )


def test_matrices_without_columns_have_the_norm_0():
    whole = np.zeros((5, 0))
    if np.lib.NumpyVersion(np.__version__) >= "2.3.0":
        assert float(np.linalg.norm(shard(whole, Sharding.tiled((2, 1))), 1)) == np.linalg.norm(whole, 1) == 0
