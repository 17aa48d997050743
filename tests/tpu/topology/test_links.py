"""Links between chips: each once in each direction, wraps where they are, twisted ones shifted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu import Topology
from ringlet.tpu.topology.links import links_of, twist_of

SHAPES = st.tuples(*[st.integers(1, 5)] * 3)
WRAPS = st.tuples(*[st.booleans()] * 3)


def by_hand(shape, wrap):
    """Every link as (source, target, axis, is_wrap), chip by chip."""
    found = []
    for place in np.ndindex(shape):
        for axis in range(3):
            for way in (1, -1):
                to = place[axis] + way
                is_wrap = not 0 <= to < shape[axis]
                if shape[axis] == 1 or (is_wrap and not wrap[axis]):
                    continue
                other = list(place)
                other[axis] = to % shape[axis]
                source, target = (int(np.ravel_multi_index(one, shape)) for one in (place, tuple(other)))
                found.append((source, target, axis, is_wrap))
    return found


def rows(links):
    return list(
        zip(links.source.tolist(), links.target.tolist(), links.axis.tolist(), links.is_wrap.tolist(), strict=True)
    )


@given(shape=SHAPES, wrap=WRAPS)
def test_links_are_those_that_one_finds_chip_by_chip(shape, wrap):
    assert sorted(rows(links_of(shape, wrap))) == sorted(by_hand(shape, wrap))


@given(shape=SHAPES, wrap=WRAPS)
def test_every_link_has_one_that_leads_back(shape, wrap):
    links = rows(links_of(shape, wrap))
    assert sorted(links) == sorted((target, source, axis, is_wrap) for source, target, axis, is_wrap in links)


def test_an_axis_of_two_chips_that_wraps_has_two_links():
    links = links_of((2, 1, 1), (True, True, True))
    assert rows(links) == [(0, 1, 0, False), (1, 0, 0, True), (0, 1, 0, True), (1, 0, 0, False)]


@pytest.mark.parametrize("shape", [(4, 4, 8), (4, 8, 8), (8, 4, 4), (2, 2, 4)])
def test_a_twist_shifts_the_wraps_of_short_axes_by_half_of_the_long_ones(shape):
    flat, twisted = links_of(shape, [True] * 3), links_of(shape, [True] * 3, twist_of(shape))
    np.testing.assert_array_equal(flat.source, twisted.source)
    np.testing.assert_array_equal(flat.axis, twisted.axis)
    short = np.array(shape)[flat.axis] == min(shape)
    is_moved = flat.target != twisted.target
    np.testing.assert_array_equal(is_moved, flat.is_wrap & short)
    there, here = (np.stack(np.unravel_index(links.target[is_moved], shape)) for links in (twisted, flat))
    for axis, length in enumerate(shape):
        moved = (there[axis] - here[axis]) % length
        assert set(moved.tolist()) == ({length // 2} if length == max(shape) else {0})


@pytest.mark.parametrize("shape", [(4, 4, 8), (4, 8, 8), (8, 8, 16)])
def test_a_twisted_torus_has_a_link_back_for_every_link_and_shorter_ways(shape):
    links = links_of(shape, [True] * 3, twist_of(shape))
    assert sorted(zip(links.source.tolist(), links.target.tolist(), strict=True)) == sorted(
        zip(links.target.tolist(), links.source.tolist(), strict=True)
    )
    assert total_distance(links, shape) < total_distance(links_of(shape, [True] * 3), shape)


def total_distance(links, shape):
    """Sum of hops from chip 0 to all others; both kinds of torus look the same from every chip."""
    distance = np.full(int(np.prod(shape)), -1)
    distance[0], reached, hops = 0, np.zeros(1, int), 0
    while reached.size:
        hops += 1
        ahead = np.unique(links.target[np.isin(links.source, reached)])
        reached = ahead[distance[ahead] < 0]
        distance[reached] = hops
    assert distance.min() >= 0
    return int(distance.sum())


@pytest.mark.parametrize("shape", [(4, 4, 4), (4, 4, 12), (2, 4, 8), (1, 1, 1)])
def test_other_shapes_have_no_twist(shape):
    assert twist_of(shape) is None


def test_the_arrays_are_read_only_and_numbers():
    links = Topology.from_accelerator_type("v4-128").links()
    assert [array.dtype for array in (links.source, links.target, links.axis, links.is_wrap)] == [np.int32] * 3 + [bool]
    assert len(links) == 64 * 6
    with pytest.raises(ValueError, match="read-only"):
        links.source[0] = 1
    assert repr(links) == "<Links: 384 directed links, 96 of them wrap>"
