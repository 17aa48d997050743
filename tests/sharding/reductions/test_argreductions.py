"""Places of extremes: pairs of value and index from each tile, the first of the best."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ringlet.sharding import Sharding, explain, shard
from tests.sharding.sweep import MESHES, assembled, placements, tiled

FUNCTIONS = (np.argmax, np.argmin, np.nanargmax, np.nanargmin)


@given(data=st.data())
def test_of_equal_extremes_the_first_one_wins(data):
    numbers = st.sampled_from([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan])
    x = data.draw(hnp.arrays(np.float32, hnp.array_shapes(min_dims=1, max_dims=3, max_side=7), elements=numbers))
    layout = data.draw(st.sampled_from(placements(data.draw(st.sampled_from(list(MESHES))), x.ndim)))
    axis = data.draw(st.sampled_from([None, *range(-x.ndim, x.ndim)]))
    for function in FUNCTIONS[:2]:
        np.testing.assert_array_equal(assembled(function(tiled(x, layout), axis=axis)), function(x, axis=axis))
    without = np.where(np.isnan(x).all(axis=axis, keepdims=True), 0, x)
    for function in FUNCTIONS[2:]:
        found = function(tiled(without, layout), axis=axis)
        np.testing.assert_array_equal(assembled(found), function(without, axis=axis))


@pytest.mark.parametrize("function", FUNCTIONS[2:])
def test_a_slice_of_nothing_but_nan_is_refused(function):
    whole = np.arange(12.0).reshape(6, 2)
    whole[:, 1] = np.nan
    with pytest.raises(ValueError, match="All-NaN slice encountered"):
        function(shard(whole, Sharding.tiled((3, 2))), axis=0)


def test_the_largest_complex_number_and_the_latest_date_are_found():
    numbers = np.array([1 + 1j, 3, 2j, 3 + 1j, 3 + 1j])
    assert int(np.argmax(shard(numbers, Sharding.tiled((4,))))) == 3
    dates = np.array(["2020", "2024", "NaT", "2025"], "datetime64[Y]")
    assert int(np.argmax(shard(dates, Sharding.tiled((2,))))) == np.argmax(dates) == 2


def test_nan_of_a_dtype_that_numpy_does_not_know_is_found():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    assert int(np.argmin(shard(np.array([1, 2, np.nan, -1], bfloat16), Sharding.tiled((4,))))) == 2


def test_pairs_are_gathered_once_and_only_along_the_dimension():
    x = shard(np.arange(64, dtype=np.float32).reshape(8, 8), Sharding.tiled((4, 2)))
    with explain() as report:
        assert np.argmax(x, axis=0).tolist() == [7] * 8
    ((gathered,),) = (operation.collectives for operation in report.operations if operation.collectives)
    assert (gathered.kind, len(gathered.groups), gathered.nbytes) == ("all-gather", 2, 8 * 3 * 4 * 8)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: np.argmax(x, axis=2), ValueError, "axis 2 is out of bounds"),
        (lambda x: np.argmax(x, axis=(0, 1)), TypeError, "integer"),
        (lambda x: np.argmin(x[:0], axis=0), ValueError, "empty sequence"),
        (lambda x: np.argmin(x, axis=0, out=np.zeros(4)), (TypeError, ValueError), "out|Cannot cast"),
    ],
)
def test_what_numpy_refuses_is_refused_alike(call, error, message):
    with pytest.raises(error, match=message):
        call(shard(np.zeros((4, 2)), Sharding.tiled((2, 2))))


def test_places_go_into_small_integers_and_into_nothing_else():
    x = shard(np.array([1, 5, 2]), Sharding.tiled((3,)))
    assert int(np.argmax(x, out=shard(np.zeros((), np.uint8), Sharding.replicated(3)))) == 1
    with pytest.raises(TypeError):
        np.argmax(x, out=shard(np.zeros(()), Sharding.replicated(3)))
