from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import GatherWarning
from ringlet.sharding import Sharding, explain, shard, strict

QUARTERS = Sharding.tiled((4,))


def collectives(compute):
    with explain() as report:
        compute()
    return [it for operation in report.operations for it in operation.collectives]


def test_rolling_passes_rows_on_around_the_ring():
    (permute,) = collectives(lambda: np.roll(shard(np.arange(8), QUARTERS), 1))
    assert sorted(permute.pairs) == [(0, 1), (1, 2), (2, 3), (3, 0)]
    assert permute.nbytes == 4 * 8


def test_padding_shifts_rows_to_neighbours():
    x = shard(np.arange(8), QUARTERS)
    assert {it.kind for it in collectives(lambda: np.pad(x, 1))} == {"collective-permute"}
    assert np.pad(x, 1, constant_values=9).shards[0].tolist() == [9, 0, 1]


def test_repeating_rows_equally_often_sends_nothing():
    assert collectives(lambda: np.repeat(shard(np.arange(8), QUARTERS), 3)) == []


@pytest.mark.parametrize(
    "change", [lambda x: np.roll(x, 1), lambda x: np.repeat(x, 2), lambda x: np.pad(x, 1), lambda x: np.tile(x, 2)]
)
def test_results_may_be_written_to(change):
    made = change(shard(np.arange(8), QUARTERS))
    made[0] = 5
    assert int(made[0]) == 5


@pytest.mark.parametrize("mode", ["mean", "maximum", "minimum", "median", "empty"])
def test_padding_may_be_computed(mode):
    whole, inner = np.arange(40).reshape(8, 5) ** 2 % 23, (slice(2, -2) if mode == "empty" else slice(None),) * 2
    with strict():
        padded = np.pad(shard(whole, Sharding.tiled((4, 1))), 2, mode)
    np.testing.assert_array_equal(padded[inner], np.pad(whole, 2, mode)[inner])
    if mode in ("mean", "median"):
        padded = np.pad(shard(whole, Sharding.tiled((4, 1))), ((1, 2), (0, 3)), mode, stat_length=3)
        np.testing.assert_array_equal(padded, np.pad(whole, ((1, 2), (0, 3)), mode, stat_length=3))


def test_odd_reflections_gather():
    with pytest.warns(GatherWarning, match=r"np\.pad"):
        padded = np.pad(shard(np.arange(8), QUARTERS), 2, "reflect", reflect_type="odd")
    np.testing.assert_array_equal(padded, np.pad(np.arange(8), 2, "reflect", reflect_type="odd"))


@pytest.mark.parametrize(
    "change",
    [
        lambda x: np.roll(x, 1, axis=3),
        lambda x: np.roll(x, (1, 2), axis=(0, 0, 0)),
        lambda x: np.repeat(x, -1),
        lambda x: np.repeat(x, [1, 2]),
        lambda x: np.tile(x, -1),
    ],
)
def test_errors_are_numpys(change):
    with pytest.raises(Exception) as expected:  # noqa: PT011
        change(np.arange(8))
    with pytest.raises(type(expected.value)) as found:
        change(shard(np.arange(8), QUARTERS))
    assert str(found.value) == str(expected.value)


def test_a_number_is_repeated_along_its_one_axis():
    assert np.asarray(np.repeat(shard(np.array(3), Sharding.replicated(2)), 2, axis=0)).tolist() == [3, 3]
