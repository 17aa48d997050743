from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.errors import ShardingError
from ringlet.sharding import Mesh, Sharding, explain, mode, shard
from ringlet.sharding.ops.reshaping import _RESHAPE_MAY_REFUSE_TO_COPY, reshape
from tests.sharding.sweep import assemble, placements, poisoned, tiled

MESH = Mesh({"x": 4, "y": 2})


def reshaped(shape, spec, new):
    """What a reshape gives, and what it sends."""
    whole = np.arange(np.prod(shape)).reshape(shape)
    with mode("copy"), explain() as report:
        made = np.reshape(shard(whole, MESH.sharding(*spec)), new)
    np.testing.assert_array_equal(np.asarray(made), whole.reshape(new))
    return made, [it.kind for operation in report.operations for it in operation.collectives]


@pytest.mark.parametrize(
    ("shape", "spec", "new", "sharding"),
    # shape, where it is cut, new shape, where the result is cut
    [
        ((8, 4), ("x", None), (4, 2, 4), "{devices=[4,1,1,2]<=[8] last_tile_dim_replicate}"),
        ((8, 4), ("x", None), (2, 4, 4), "{devices=[2,2,1,2]<=[8] last_tile_dim_replicate}"),
        ((8, 4), ("x", None), (32,), "{devices=[4,2]<=[8] last_tile_dim_replicate}"),
        ((8, 4), (None, "x"), (2, 4, 4), "{devices=[1,1,4,2]<=[8] last_tile_dim_replicate}"),
        ((4, 8), ("x", "y"), (32,), "{devices=[8]<=[8]}"),
        ((32,), (("x", "y"),), (4, 8), "{devices=[4,2]<=[8]}"),
        ((6, 4), ("x", None), (3, 2, 4), "{devices=[4,1,1,2]<=[8] last_tile_dim_replicate}"),
    ],
)
def test_tiles_that_are_tiles_of_the_new_shape_stay_where_they_are(shape, spec, new, sharding):
    made, kinds = reshaped(shape, spec, new)
    assert (str(made.sharding), kinds) == (sharding, [])


def test_a_dimension_that_is_merged_but_not_the_first_is_gathered():
    made, kinds = reshaped((8, 4), ("x", "y"), (32,))
    assert (str(made.sharding), kinds) == ("{devices=[4,2]<=[8] last_tile_dim_replicate}", ["all-gather"])


def test_tiles_that_begin_elsewhere_take_from_their_neighbours():
    _, kinds = reshaped((10,), ("x",), (5, 2))
    assert set(kinds) == {"collective-permute"}


def test_a_reshaped_array_is_a_view_where_that_is_possible():
    whole = np.arange(32).reshape(8, 4)
    x = shard(whole, Sharding.tiled((4, 1)))
    assert np.shares_memory(x.reshape(-1)._tile(1), whole)
    assert not np.shares_memory(x.T.reshape(-1)._tile(1), whole)


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("new", [(32,), (4, 8)])
def test_reshaped_arrays_are_values_unless_a_copy_is_asked_for(memory, new):
    with mode(memory):
        x = shard(np.arange(32).reshape(8, 4), Sharding.tiled((1, 4)))
        with pytest.raises(ShardingError, match="read-only"):
            x.reshape(new)[0] = 1
        copied = reshape(x, new, copy=True)
        copied[0] = 7
        x[1] = 0
        assert np.asarray(x)[0].tolist() == [0, 1, 2, 3]
        assert np.asarray(copied).sum() == 496 + (7 * copied[0].size - np.arange(copied[0].size).sum())


@pytest.mark.parametrize(
    "copied",
    [
        lambda x: reshape(x, (4, 2), copy=True),
        lambda x: np.repeat(x, 1),
        lambda x: np.repeat(x[None], 3, axis=0),
        lambda x: np.meshgrid(x, x)[1],
        lambda x: np.meshgrid(x, sparse=True)[0],
        pytest.param(
            lambda x: np.asarray(x, copy=True, like=x),
            marks=pytest.mark.skipif(np.__version__ < "2", reason="no copy="),
        ),
    ],
)
def test_a_copy_does_not_share_the_memory_that_was_sharded(copied):
    whole = np.arange(8)
    made = copied(shard(whole, Sharding.tiled((2,))))
    whole[:] = 9
    assert set(np.asarray(made).ravel().tolist()) == {*range(8)}


@pytest.mark.skipif(not _RESHAPE_MAY_REFUSE_TO_COPY, reason="no copy=")
@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("size", [4, 2048])  # the calls of small arrays are cached
def test_a_copy_that_is_not_allowed_is_numpys_error(memory, size):
    with mode(memory):
        x = shard(np.zeros((size, size)), Sharding.tiled((2, 1)))
        assert np.reshape(x, -1, copy=False).shape == (size**2,)
        assert np.reshape(x.T, -1, order="F", copy=False).shape == (size**2,)
        assert np.reshape(x[:0].T, -1, copy=False).shape == (0,)
        for refused in (lambda: np.reshape(x.T, -1, copy=False), lambda: np.reshape(x, -1, order="F", copy=False)):
            with pytest.raises(ValueError, match="Unable to avoid creating a copy while reshaping"):
                refused()


def test_partial_values_may_be_reshaped():
    total = shard(np.arange(24.0).reshape(4, 6), Sharding.tiled((4, 1))).sum(0).reshape(2, 3)
    assert total._layout.is_partial
    assert np.asarray(total).tolist() == [[36.0, 40.0, 44.0], [48.0, 52.0, 56.0]]


def test_an_array_on_one_device_stays_there():
    x = shard(np.arange(6), Sharding.maximal(2, 4)).reshape(2, 3)
    assert str(x.sharding) == "{maximal device=2}"


@pytest.mark.parametrize(("shape", "order"), [((5, 5), "C"), ((-1, -1), "C"), ((4, 8), "B"), ("a", "C")])
def test_errors_are_numpys(shape, order):
    with pytest.raises(Exception) as expected:  # noqa: PT011
        np.reshape(np.arange(32), shape, order)
    with pytest.raises(type(expected.value)) as found:
        np.reshape(shard(np.arange(32), Sharding.tiled((4,))), shape, order)
    assert str(found.value) == str(expected.value)


# Small factors, which two shapes group differently.
factors = st.lists(st.sampled_from([1, 2, 2, 3, 4, 5]), min_size=1, max_size=5)


def grouped(numbers, places):
    """Numbers multiplied together between places."""
    bounds = [0, *sorted(place % (len(numbers) + 1) for place in places), len(numbers)]
    return tuple(int(np.prod(numbers[a:b])) for a, b in itertools.pairwise(bounds))


places = st.lists(st.integers(0, 5), max_size=2)
# Which of the placements, on which mesh, in which memory.
lying = st.tuples(st.sampled_from(["2", "4", "2x2"]), st.integers(0, 99), st.sampled_from(["shared", "copy"]))


@given(factors, places, places, lying)
def test_any_shape_becomes_any_other(numbers, one, other, how):
    mesh, number, memory = how
    shape, new = grouped(numbers, one), grouped(numbers[::-1], other)
    whole = np.arange(np.prod(shape)).reshape(shape)
    layouts = placements(mesh, len(shape))
    with mode(memory), poisoned():
        made = tiled(whole, layouts[number % len(layouts)]).reshape(new)
        np.testing.assert_array_equal(assemble(made), whole.reshape(new))
