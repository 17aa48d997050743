"""Walks through places: sweeps, and closed walks from neighbour to neighbour around holes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu.assignment.order_candidates import closed_walk, shorten, sweeps
from ringlet.tpu.cost.link_traffic import Network

OPEN = (False, False, False)


def box(*sizes: int) -> np.ndarray:
    return np.stack(np.meshgrid(*map(range, sizes), indexing="ij"), -1).reshape(-1, len(sizes))


def steps(places: np.ndarray, walk: np.ndarray, sizes: tuple[int, ...], wrap: tuple[bool, ...] = OPEN) -> np.ndarray:
    """Hops of a closed walk."""
    chips = np.ravel_multi_index(tuple(places.T), sizes)[walk]
    return Network(sizes, wrap).distances(chips, np.roll(chips, -1))


sizes_of_boxes = st.tuples(*[st.integers(1, 6)] * 3)


@given(places=st.sets(st.tuples(*[st.integers(0, 3)] * 3), min_size=1))
def test_a_closed_walk_goes_through_every_place_once_whatever_the_holes(places):
    walk = closed_walk(np.array(sorted(places)), (4, 4, 4), OPEN)
    assert sorted(walk.tolist()) == list(range(len(places)))


@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 5)).map(lambda s: (2 * s[0], 2 * s[1], s[2]))
)
def test_whole_squares_are_walked_in_steps_of_one(sizes):
    places = box(*sizes)
    assert set(steps(places, closed_walk(places, sizes, OPEN), sizes)) == {1}


@given(missing=st.sets(st.integers(0, 15), max_size=9))
def test_so_are_whole_squares_with_holes_as_long_as_they_hang_together(missing):
    squares = [(x, y) for x in range(4) for y in range(4) if 4 * x + y not in missing]
    places = np.array([[2 * x + dx, 2 * y + dy, 0] for x, y in squares for dx in (0, 1) for dy in (0, 1)])
    reached = {squares[0]}
    while more := {
        s for s in squares if s not in reached and any(abs(s[0] - r[0]) + abs(s[1] - r[1]) == 1 for r in reached)
    }:
        reached |= more
    longest = steps(places, closed_walk(places, (8, 8, 1), OPEN), (8, 8, 1)).max()
    assert (longest == 1) == (len(reached) == len(squares))


@pytest.mark.parametrize("sizes", [(3, 4, 1), (4, 3, 1), (3, 3, 2), (5, 2, 3), (2, 5, 5)])
def test_an_even_number_of_chips_with_odd_sides_still_has_a_ring(sizes):
    places = box(*sizes)
    assert set(steps(places, closed_walk(places, sizes, OPEN), sizes)) == {1}


@pytest.mark.parametrize("sizes", [(3, 3, 1), (3, 5, 1), (5, 5, 1)])
def test_an_odd_number_of_chips_needs_one_step_of_two(sizes):
    places = box(*sizes)
    assert sorted(steps(places, closed_walk(places, sizes, OPEN), sizes))[-2:] == [1, 2]


@pytest.mark.parametrize(
    ("sizes", "count"),
    [((1, 1, 1), 2), ((4, 1, 1), 2), ((4, 3, 1), 4), ((2, 2, 2), 12)],
)
def test_sweeps_take_the_axes_that_have_a_length_in_every_order(sizes, count):
    orders = [tuple(order.tolist()) for order in sweeps(box(*sizes))]
    assert len(orders) == count
    assert all(sorted(order) == list(range(int(np.prod(sizes)))) for order in orders)


@given(sizes=sizes_of_boxes)
def test_every_other_sweep_goes_from_neighbour_to_neighbour(sizes):
    places = box(*sizes)
    for order in list(sweeps(places))[1::2]:
        assert (np.abs(np.diff(places[order], axis=0)).sum(1) == 1).all()


@given(seed=st.integers(0, 2**32 - 1), sizes=st.tuples(st.integers(2, 5), st.integers(2, 5)))
def test_shortening_never_makes_a_walk_longer_and_keeps_its_places(seed, sizes):
    places = box(*sizes, 1)
    order = np.random.default_rng(seed).permutation(len(places))
    distance = np.abs(places[:, None] - places[None]).sum(-1)
    short = shorten(order, distance)
    assert sorted(short.tolist()) == sorted(order.tolist())
    assert short[0] == order[0]
    before, after = (distance[walk, np.roll(walk, -1)] ** 2 for walk in (order, short))
    assert after.sum() <= before.sum()


@pytest.mark.parametrize("count", [3, 800])
def test_walks_too_short_or_too_long_to_shorten_stay(count):
    order = np.arange(count)
    assert shorten(order, np.zeros((1, 1), int)) is order
