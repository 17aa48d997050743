"""Which hops a ring makes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu.drawing.hops import HopKind, ring_hops, shortest_ways
from tests.tpu.drawing.slices import topology


def kinds(ring, periods=()):
    return [hop.kind for hop in ring_hops(ring, periods)]


def test_a_ring_has_a_hop_for_each_core_back_to_its_beginning():
    hops = ring_hops([[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0]], [])
    assert [hop.kind for hop in hops] == [HopKind.STEP] * 4
    assert hops[-1].target == (0, 0, 0, 0)
    assert [(hop.axis, hop.direction) for hop in hops] == [(0, 1), (1, 1), (0, -1), (1, -1)]


def test_two_cores_have_one_hop_and_one_core_has_none():
    assert kinds([[0, 0, 0, 0], [1, 0, 0, 0]]) == [HopKind.STEP]
    assert kinds([[0, 0, 0, 0]]) == []
    assert kinds(np.zeros((0, 4))) == []


@pytest.mark.parametrize(
    ("target", "periods", "kind", "links"),
    [
        ([0, 0, 0, 1], [], HopKind.STAY, 0),
        ([1, 0, 0, 0], [], HopKind.STEP, 1),
        ([0, 0, 1, 0], [], HopKind.LAYER, 1),
        ([3, 0, 0, 0], [], HopKind.LONG, 3),
        ([3, 0, 0, 0], [(4, 0, 0)], HopKind.WRAP, 1),
        ([0, 0, 3, 0], [(0, 0, 4)], HopKind.LAYER, 1),
        ([2, 0, 0, 0], [(4, 0, 0)], HopKind.LONG, 2),
        ([3, 1, 0, 0], [(4, 0, 0)], HopKind.LONG, 2),
    ],
)
def test_a_hop_is_of_the_kind_that_its_links_are(target, periods, kind, links):
    (hop,) = ring_hops([[0, 0, 0, 0], target], periods)
    assert (hop.kind, hop.links) == (kind, links)


def steps_between(links, source, target):
    """Over how many links the shortest way goes, found by searching."""
    seen, edge, steps = {source}, [source], 0
    while target not in seen:
        edge = list({int(end) for chip in edge for end in links.target[links.source == chip]} - seen)
        seen.update(edge)
        steps += 1
    return steps


@pytest.mark.parametrize("name", ["v5e-32", "v4-128", "v5p-4x4x8", "v3-128"])
@pytest.mark.parametrize("twisted", [False, True])
@given(data=st.data())
def test_the_way_is_as_long_as_the_shortest_over_links(name, twisted, data):
    if twisted and name != "v5p-4x4x8":
        return
    slice_ = topology(name, twisted=twisted)
    chips = list(itertools.product(*map(range, slice_.chip_shape)))
    source, target = (data.draw(st.integers(0, len(chips) - 1)) for _ in range(2))
    from ringlet.tpu.drawing.subject import subject_of

    (way,) = shortest_ways([chips[source]], [chips[target]], subject_of(slice_).periods)
    assert np.abs(way).sum() == steps_between(slice_.links(), source, target)
