"""Orders of devices: rings close with hops of one link, grids go through every place once."""

from __future__ import annotations

import itertools
import logging
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu.assignment.placement import grid_order, mesh_assignment, replica_grid, ring, ring_assignment

EVEN = st.tuples(*[st.sampled_from([1, 2, 4, 6, 8])] * 3)
ANY = st.tuples(*[st.integers(1, 6)] * 3)


def hops(places):
    """Links between each place and the next, the first one after the last."""
    return np.abs(places - np.roll(places, -1, 0)).sum(1)


@given(shape=ANY)
def test_a_ring_goes_through_every_place_once(shape):
    assert sorted(map(tuple, ring(shape).tolist())) == list(itertools.product(*map(range, shape)))


@given(shape=EVEN.filter(lambda shape: sum(length > 1 for length in shape) >= 2))
def test_a_ring_of_even_sides_closes_with_hops_of_one_link(shape):
    assert set(hops(ring(shape)).tolist()) == {1}


@pytest.mark.parametrize("shape", [(5, 1, 1), (1, 3, 1), (1, 1, 8)])
def test_a_single_row_is_taken_from_end_to_end_without_a_warning(shape, caplog):
    assert hops(ring(shape)).tolist() == [1] * (max(shape) - 1) + [max(shape) - 1]
    assert caplog.records == []


def test_a_flat_ring_keeps_the_first_column_for_the_way_home():
    order = np.empty((4, 4), int)
    steps = ring((4, 4, 1))
    order[steps[:, 1], steps[:, 0]] = np.arange(16)
    assert order.tolist() == [[0, 1, 2, 3], [15, 6, 5, 4], [14, 7, 8, 9], [13, 12, 11, 10]]


def test_a_ring_of_two_by_two_by_two():
    text = " ".join("".join(map(str, place)) for place in ring((2, 2, 2)).tolist())
    assert text == "000 100 110 010 011 111 101 001"


def test_odd_sides_are_taken_row_by_row_with_a_warning(caplog):
    with caplog.at_level(logging.WARNING, "ringlet"):
        places = ring((3, 2, 1)).tolist()
    assert places == [[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0], [1, 1, 0], [2, 1, 0]]
    assert [record.message.startswith("Odd dimension: 3x2x1") for record in caplog.records]


@given(shape=ANY, order=st.permutations([0, 1, 2]))
def test_a_grid_is_counted_through_with_the_first_axis_fastest(shape, order):
    expected = sorted(itertools.product(*map(range, shape)), key=lambda place: [place[axis] for axis in order[::-1]])
    assert grid_order(shape, order).tolist() == [list(place) for place in expected]


@pytest.mark.parametrize(
    ("capacity", "replicas", "grid"),
    [
        ((2, 2, 1, 2), 4, (2, 1, 1, 2)),
        ((2, 2, 1, 2), 0, (0, 0, 0, 0)),
        ((4, 4, 4, 1), 64, (4, 4, 4, 1)),
        ((8, 8, 8, 1), 64, (4, 4, 4, 1)),
        ((16, 16, 16, 2), 1, (1, 1, 1, 1)),
    ],
)
def test_replicas_make_a_block_as_cubic_as_possible(capacity, replicas, grid):
    assert replica_grid(capacity, replicas) == grid


@given(capacity=st.tuples(*[st.integers(1, 9)] * 4), data=st.data())
def test_the_grid_of_replicas_finds_room(capacity, data):
    replicas = data.draw(st.integers(1, math.prod(capacity)))
    grid = replica_grid(capacity, replicas)
    assert replicas <= math.prod(grid)
    assert all(1 <= many <= most for many, most in zip(grid, capacity, strict=True))


def test_replicas_with_a_stride_interleave():
    assert mesh_assignment(2, (2, 1, 1, 1), (2, 1, 1, 1), (2, 1, 1, 1))[..., 0].tolist() == [[0, 2], [1, 3]]


def test_in_a_ring_every_chip_gives_its_cores_before_the_next():
    cores = ring_assignment((1, 1, 1, 1), (2, 2, 1, 2))[0]
    assert cores[:, 3].tolist() == [0, 1] * 4
    assert cores[::2, :2].tolist() == [[0, 0], [1, 0], [1, 1], [0, 1]]
