from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import GatherWarning, ShardingError
from ringlet.sharding import Sharding, explain, shard, strict

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


QUARTERS = Sharding.tiled((4,))


def test_a_difference_takes_a_row_from_the_next_device():
    with explain() as report:
        np.diff(shard(np.arange(8), QUARTERS))
    (permute,) = report.operations[0].collectives
    assert permute.pairs == ((1, 0), (2, 1), (3, 2))
    assert permute.nbytes == 3 * 8


def test_no_difference_is_the_array_itself():
    x = shard(np.arange(8), QUARTERS)
    assert np.diff(x, 0) is x


@pytest.mark.parametrize("options", [{"n": -1}, {"axis": 1}, {"prepend": np.ones((2, 2))}])
def test_errors_are_numpys(options):
    with pytest.raises(Exception) as expected:  # noqa: PT011
        np.diff(np.arange(8), **options)
    with pytest.raises(type(expected.value)) as found:
        np.diff(shard(np.arange(8), QUARTERS), **options)
    assert str(found.value) == str(expected.value)


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


TWO_ROWS = Sharding.tiled((2, 1))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: np.fill_diagonal(x, 7),
        lambda x: np.fill_diagonal(a=x, val=7),
        lambda x: np.put(x, [1, 4], [8, 9]),
        lambda x: np.place(x, x > 4, [1, 2]),
        lambda x: np.putmask(x, x > 4, -x),
        lambda x: np.putmask(x, x > 4, 9),
        lambda x: np.putmask(x, (x > 4)[None], 9),
        lambda x: np.copyto(x, -x[None], where=x > 4),
        lambda x: np.place(x, x > 4, 9),
        lambda x: np.put_along_axis(x, np.array([[0, 1, 2]]), 5, axis=0),
    ],
)
def test_each_device_writes_to_its_own_tile(write):
    whole, expected = np.arange(9).reshape(3, 3), np.arange(9).reshape(3, 3)
    x = shard(whole, TWO_ROWS)
    with strict():
        write(x)
    write(expected)
    np.testing.assert_array_equal(np.asarray(x), expected)
    np.testing.assert_array_equal(whole, expected)


def test_a_plain_array_is_written_to_at_places_that_are_sharded():
    whole = np.zeros(4)
    with pytest.warns(GatherWarning, match=r"np\.put"):
        np.put(whole, shard(np.array([0, 2]), Sharding.tiled((2,))), 5)
    assert whole.tolist() == [5, 0, 5, 0]


def test_slices_are_not_written_to():
    with pytest.raises(ShardingError, match="read-only"):
        np.put(shard(np.zeros((4, 2)), TWO_ROWS)[1:], [0], 1)


@pytest.mark.parametrize(
    "quantile",
    [
        lambda x: np.median(x, overwrite_input=True),
        lambda x: np.nanmedian(x, 0, None, True),
        lambda x: np.percentile(x, 30, overwrite_input=True),
        lambda x: np.nanquantile(x, 0.3, axis=1, overwrite_input=True),
    ],
)
def test_quantiles_may_overwrite_their_input(quantile):
    values = np.array([[3.0, 1.0, 2.0], [7.0, 9.0, 8.0]])
    x = shard(values.copy(), Sharding.tiled((2, 1)))
    with strict():
        found = quantile(x)
    np.testing.assert_array_equal(found, quantile(values.copy()))
    np.testing.assert_array_equal(x, values)
