from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding import Sharding, map_halo, map_halo_vjp, shard
from ringlet.sharding.halo import stencil
from tests.sharding.halo.reference import everywhere, run_tiled
from tests.sharding.halo.test_boundary import PADS, padded

KINDS = st.sampled_from(list(PADS))
CASES = st.tuples(
    st.lists(st.tuples(st.integers(1, 7), st.integers(0, 9), st.integers(0, 9), KINDS), min_size=1, max_size=3),
    st.integers(0, 1 << 30),
)


def weighted(weights, before):
    """A stencil, and its gradient: sums of the elements around each."""

    def function(part):
        inner = [size - taps + 1 for size, taps in zip(part.shape, weights.shape, strict=True)]
        boxes = {
            tap: part[tuple(slice(j, j + size) for j, size in zip(tap, inner, strict=True))]
            for tap in map(tuple, np.argwhere(weights))
        }
        return sum((weights[tap] * box for tap, box in boxes.items()), start=np.zeros(inner, int))

    def gradient(part, cotangent):
        total = np.zeros(part.shape, cotangent.dtype)
        for tap in map(tuple, np.argwhere(weights)):
            total[tuple(slice(j, j + size) for j, size in zip(tap, cotangent.shape, strict=True))] += (
                weights[tap] * cotangent
            )
        return total

    return function, gradient


@given(CASES, st.sampled_from([1, 16]))
def test_stencils_and_their_gradients_are_those_of_the_whole_however_it_is_cut(case, num_parts):
    sides, seed = case
    lengths, before, after, kinds = zip(*sides, strict=True)
    generator, depth = np.random.default_rng(seed), list(zip(before, after, strict=True))
    weights = np.zeros([1 + one + other for one, other in depth], int)
    for _ in range(6):
        weights[tuple(map(generator.integers, weights.shape))] = generator.integers(-3, 4)
    function, gradient = weighted(weights, before)
    x, other, cotangent = generator.integers(-9, 9, (3, *lengths))
    around = tuple(slice(20 - one, 20 + n + two) for n, (one, two) in zip(lengths, depth, strict=True))
    expected = function(padded(x, kinds)[around])

    def both(x, cotangent):
        return map_halo(function, x, depth, kinds), map_halo_vjp(gradient, x, cotangent, depth, kinds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stencil, "_PART_BYTES", max(x.nbytes // num_parts, 8))
        whole, dx = both(x, cotangent)
        np.testing.assert_array_equal(whole, expected)
        change = function(padded(x + other, kinds)[around]) - expected
        assert (dx * other).sum() == (change * cotangent).sum()
        for memory, layouts in everywhere((x.ndim, x.ndim), generator):
            found = run_tiled(both, (x, cotangent), layouts, memory)
            np.testing.assert_array_equal(found[0], expected)
            np.testing.assert_array_equal(found[1], dx)


def test_a_result_as_large_as_what_the_function_took_loses_its_ends():
    x = np.arange(6)
    np.testing.assert_array_equal(map_halo(lambda part: part * 2, x, [(1, 2)]), x * 2)


def test_the_dtype_is_that_of_the_function():
    x = shard(np.arange(6), Sharding.tiled((4,)))
    assert map_halo(lambda part: part[1:-1] / 2, x, 1).dtype == np.float64
    assert map_halo(lambda part: part > 2, np.arange(3), 0).dtype == bool


@pytest.mark.parametrize("depth", [0, 1], ids=["a view", "a copy"])
def test_parts_are_not_to_be_written_to(depth):
    x = shard(np.arange(8.0), Sharding.tiled((2,)))

    def write(part):
        part[0] = 1

    with pytest.raises(ValueError, match="read-only"):
        map_halo(write, x, depth)


def test_large_arrays_come_in_parts_that_fit_the_cache():
    sizes, lock = [], threading.Lock()

    def function(part):
        with lock:
            sizes.append(part.size)
        return part[1:-1]

    x = np.arange(200_000.0)
    np.testing.assert_array_equal(np.asarray(map_halo(function, shard(x, Sharding.tiled((2,))), 1)), x)
    assert max(sizes) <= stencil._PART_BYTES // 8 + 2


@pytest.mark.parametrize("shape", [(0,), (3, 0), ()])
def test_empty_and_single_arrays_are_fine(shape):
    x = np.ones(shape)
    np.testing.assert_array_equal(map_halo(lambda part: part * 2, x, 0), x * 2)


@pytest.mark.parametrize(
    ("depth", "boundary", "message"),
    [
        ([1, 1], "zero", "depth is .* for each of 1 dimensions"),
        (-1, "zero", "depth is -1: expected a number of 0 or more"),
        (1, ["zero", "zero"], "boundary is .* one for each of 1 dimensions"),
        (1.5, "zero", "depth is 1.5: expected a number"),
        (1, "wrap", "'wrap' is not a boundary"),
    ],
)
def test_depths_and_boundaries_for_other_arrays_are_refused(depth, boundary, message):
    with pytest.raises(ValueError, match=message):
        map_halo(lambda part: part, np.ones(3), depth, boundary)


def test_results_of_other_shapes_are_refused():
    with pytest.raises(
        ValueError, match=r"returned shape \(4,\) for an argument of shape \(5,\): expected \(3,\), the shape without"
    ):
        map_halo(lambda part: part[1:], np.ones(3), 1)
    with pytest.raises(ValueError, match=r"returned a gradient of shape \(3,\): expected \(5,\)"):
        map_halo_vjp(lambda part, cotangent: cotangent, np.ones(3), np.ones(3), 1)
    with pytest.raises(ValueError, match=r"the gradient has shape \(2,\), expected the result's shape \(3,\)"):
        map_halo_vjp(lambda part, cotangent: part, np.ones(3), np.ones(2), 1)
