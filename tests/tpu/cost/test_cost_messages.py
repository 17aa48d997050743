"""Kinds of traffic: what is counted instead of listed gives the same loads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu.cost import cost_messages
from ringlet.tpu.cost.cost_fabric import Fabric, FabricOptions
from ringlet.tpu.cost.cost_messages import Exchange, HostTraffic, Messages, Multicast
from tests.tpu.meshes import mesh


def fabric(*shape: int, wrap: bool = False, twisted: bool = False) -> Fabric:
    topology = mesh(*shape, wrap=wrap)
    options = FabricOptions(bandwidth=1.0, host_bandwidth=1.0, twisted=twisted)
    return Fabric.of(topology, topology.device_coordinates.reshape(-1, 4).astype(np.int64), options)


@given(
    shape=st.tuples(*[st.integers(1, 4)] * 3, st.integers(1, 2)),
    wrap=st.booleans(),
    data=st.data(),
)
def test_pairs_that_are_counted_load_links_as_pairs_that_are_listed(shape, wrap, data):
    made = fabric(*shape, wrap=wrap)
    group = data.draw(st.lists(st.sampled_from(range(len(made.chip))), min_size=1, unique=True))
    listed, longest = Exchange(np.array([group]), 1.0).crossings(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost_messages, "_MAX_PAIRS", 0)
        counted, most = Exchange(np.array([group]), 1.0).crossings(made)
    np.testing.assert_allclose(counted, listed, atol=1e-9)
    assert most >= longest
    if len(group) == len(made.chip):
        assert most == longest


def test_pairs_in_a_twisted_torus_are_counted_too(monkeypatch):
    made = fabric(2, 2, 4, wrap=True, twisted=True)
    exchange = Exchange(np.arange(16)[None], 1.0)
    listed, longest = exchange.crossings(made)
    monkeypatch.setattr(cost_messages, "_MAX_PAIRS", 0)
    counted, most = exchange.crossings(made)
    np.testing.assert_allclose(counted, listed)
    assert most == longest


def test_messages_between_the_devices_of_a_chip_use_no_link_between_chips():
    made = fabric(2, 1, 1, 2)
    loads, hops = Messages(np.array([0, 1, 2]), np.array([1, 0, 3]), 1.0, weight=np.array([5, 7, 1])).crossings(made)
    assert loads[: made.num_links].sum() == hops == 0
    assert loads[made.num_links : made.first_bus].tolist() == [5, 7, 1, 0]


@given(root=st.integers(0, 15), wrap=st.booleans())
def test_a_multicast_crosses_a_link_once_and_reaches_every_chip(root, wrap):
    made = fabric(4, 4, wrap=wrap)
    loads, _ = Multicast(np.arange(16)[None], root, 1.0).crossings(made)
    assert set(loads) == {0, 1}
    assert loads.sum() == 15  # a tree over 16 chips


def test_a_multicast_reaches_both_devices_of_every_chip():
    made = fabric(3, 1, 1, 2)
    loads, hops = Multicast(np.arange(6)[None], 3, 1.0).crossings(made)
    assert loads[: made.num_links].sum() == 2
    # From the first device that a chip has in the group; at the root from the root.
    assert loads[made.num_links : made.first_bus].tolist() == [1, 0, 0, 1, 1, 0]
    assert hops == 1


def test_several_groups_may_multicast_over_the_same_link():
    made = fabric(2, 1, 1, 2)
    loads, _ = Multicast(np.array([[0, 2], [1, 3]]), 0, 1.0).crossings(made)
    assert loads[: made.num_links].max() == 2


def test_traffic_into_the_network_passes_the_chip_and_the_card_of_the_host():
    made = fabric(2, 1, 1, 2)
    loads, hops = HostTraffic(np.array([0, 1, 2]), 1.0).crossings(made)
    assert loads[made.first_bus :].tolist() == [2, 1, 3]
    assert loads.sum() == 6
    assert hops == 0


def test_rings_in_a_twisted_torus_close_on_their_own_line():
    made = fabric(4, 4, 8, wrap=True, twisted=True)
    column = np.arange(128).reshape(4, 4, 8)[:, 0, 0]
    messages = {"source": column, "target": np.roll(column, -1), "unit_bytes": 1.0}
    assert Messages(**messages, is_plain=True).crossings(made)[1] == 1
    assert Messages(**messages).crossings(made)[1] > 1
