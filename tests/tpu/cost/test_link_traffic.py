"""Bytes on links: every message is somewhere on its way, and never longer than it has to be."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu.cost.link_traffic import Network
from ringlet.tpu.topology.links import Links, links_of, twist_of
from tests.tpu.meshes import networks

OPEN = (False, False, False)
TORUS = (True, True, True)


def ring_messages(order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both directions between neighbours of a ring."""
    following = np.roll(order, -1)
    return np.r_[order, following], np.r_[following, order]


def all_pairs(network: Network) -> tuple[np.ndarray, np.ndarray]:
    source, target = np.indices((network.num_chips,) * 2)
    return source.ravel(), target.ravel()


def shortest_ways(links: Links, num_chips: int) -> np.ndarray:
    """Hops between all chips, by walking along links."""
    ahead: list[list[int]] = [[] for _ in range(num_chips)]
    for source, target in zip(links.source.tolist(), links.target.tolist(), strict=True):
        ahead[source].append(target)
    hops = np.full((num_chips, num_chips), -1)
    for start in range(num_chips):
        hops[start, start] = 0
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            for there in ahead[here]:
                if hops[start, there] < 0:
                    hops[start, there] = hops[start, here] + 1
                    waiting.append(there)
    return hops


@pytest.mark.parametrize(
    ("size", "most_on_a_ring", "most_on_a_line"),
    [
        # chips, chunks of an all-to-all on the busiest directed link: N^2/8 or (N^2-1)/8, and N^2/4
        (3, 1, 2),
        (4, 2, 4),
        (5, 3, 6),
        (7, 6, 12),
        (8, 8, 16),
        (16, 32, 64),
    ],
)
def test_links_carry_as_many_chunks_of_an_all_to_all_as_counting_says(size, most_on_a_ring, most_on_a_line):
    for wrap, most in ((True, most_on_a_ring), (False, most_on_a_line)):
        network = Network((1, size, 1), (False, wrap, False))
        assert network.route(*all_pairs(network))[0].max() == most


@pytest.mark.parametrize(
    ("shape", "wrap", "most", "longest", "crossings"),
    [
        # chips in row-major order as a ring, messages on a link, hops to a neighbour, links crossed
        ((2, 2, 1), OPEN, 2, 2, 12),
        ((4, 4, 1), OPEN, 2, 6, 60),
        ((8, 8, 1), OPEN, 2, 14, 252),
        ((16, 16, 1), (True, True, False), 1, 2, 544),
    ],
)
def test_a_row_major_ring_shares_links_unless_wraps_rescue_it(shape, wrap, most, longest, crossings):
    loads, hops = Network(shape, wrap).route(*ring_messages(np.arange(np.prod(shape))))
    assert (loads.max(), hops.max(), loads.sum()) == (most, longest, crossings)


def test_the_outer_part_of_a_split_axis_loads_each_link_as_often_as_the_inner_part_is_long():
    groups = np.arange(16).reshape(4, 4).T  # stride 4: four rings, interleaved
    messages = [ring_messages(group) for group in groups]
    source, target = (np.concatenate(side) for side in zip(*messages, strict=True))
    loads, _ = Network((16, 1, 1), (True, False, False)).route(source, target)
    assert set(loads[0].ravel()) == {4}


@given(network=networks(), seed=st.integers(0, 2**32 - 1))
def test_the_loads_of_all_links_add_up_to_what_was_sent_times_hops(network, seed):
    random = np.random.default_rng(seed)
    source, target = random.integers(network.num_chips, size=(2, 30))
    weight = random.integers(1, 100, 30)
    loads, hops = network.route(source, target, weight, order=random.permutation(3).tolist())
    assert loads.sum() == (weight * hops).sum()
    assert (loads >= 0).all()


@given(network=networks())
def test_only_links_that_exist_are_loaded_and_the_topology_lists_them_in_the_same_order(network):
    loads, _ = network.route(*all_pairs(network))
    assert not loads[~network.exists].any()
    links = links_of(network.shape, network.wrap)
    axis, way, chip = np.nonzero(network.exists)
    assert np.array_equal(links.source, chip)
    assert np.array_equal(links.axis, axis)
    for index in range(len(links)):
        step = np.array([1 - 2 * way[index]])
        nothing = np.zeros((3, 2, network.num_chips))
        assert network.walk_axis(nothing, axis[index], chip[[index]], step, np.ones(1)) == links.target[index]


@given(network=networks(4))
def test_messages_take_shortest_ways(network):
    hops = shortest_ways(links_of(network.shape, network.wrap), network.num_chips)
    source, target = all_pairs(network)
    assert np.array_equal(network.distances(source, target), hops.ravel())


@given(network=networks(4), order=st.permutations([0, 1, 2]))
def test_on_a_torus_an_all_to_all_loads_all_links_of_an_axis_alike(network, order):
    torus = Network(network.shape, TORUS)
    loads, _ = torus.route(*all_pairs(torus), order=order)
    for axis in range(3):
        on_axis = loads[axis][torus.exists[axis]]
        assert on_axis.size == 0 or np.ptp(on_axis) == 0


def test_messages_to_oneself_load_nothing():
    loads, hops = Network((4, 4, 4), TORUS).route(np.arange(64), np.arange(64))
    assert loads.sum() == hops.sum() == 0


def test_more_messages_than_fit_in_a_block_are_all_routed():
    network = Network((2, 1, 1), OPEN)
    count = (1 << 19) + 3
    loads, _ = network.route(np.zeros(count, np.int64), np.ones(count, np.int64))
    assert loads[0, 0].tolist() == [count, 0]


# --- twisted tori ---------------------------------------------------------------------------------------------------

TWISTED = [(4, 4, 8), (4, 8, 4), (2, 4, 4), (4, 8, 8)]


@pytest.mark.parametrize("shape", TWISTED)
def test_a_twisted_torus_has_the_links_that_the_topology_lists(shape):
    network = Network(shape, TORUS, twist_of(shape))
    links = links_of(shape, TORUS, twist_of(shape))
    axis, way, chip = np.nonzero(network.exists)
    arrived = np.empty(len(links), np.int64)
    for index in range(3):
        here = axis == index
        nothing = np.zeros((3, 2, network.num_chips))
        arrived[here] = network.walk_axis(nothing, index, chip[here], 1 - 2 * way[here], np.ones(here.sum()))
    assert np.array_equal(arrived, links.target)


@pytest.mark.parametrize("shape", TWISTED)
def test_messages_take_shortest_ways_in_a_twisted_torus(shape):
    network = Network(shape, TORUS, twist_of(shape))
    loads, hops = network.route(*all_pairs(network))
    assert np.array_equal(hops, shortest_ways(links_of(shape, TORUS, twist_of(shape)), network.num_chips).ravel())
    assert loads.sum() == pytest.approx(hops.sum())


@pytest.mark.parametrize("shape", TWISTED)
def test_a_twist_makes_an_all_to_all_faster(shape):
    twisted, plain = (Network(shape, TORUS, twist) for twist in (twist_of(shape), None))
    assert twisted.route(*all_pairs(twisted))[0].max() < 0.8 * plain.route(*all_pairs(plain))[0].max()


def test_a_twisted_network_can_be_had_without_its_twist():
    network = Network((4, 4, 8), TORUS, twist_of((4, 4, 8)))
    assert network.plain() == Network((4, 4, 8), TORUS)
