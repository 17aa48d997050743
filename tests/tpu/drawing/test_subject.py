"""What is drawn, read from topologies and assignments."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.tpu.drawing.subject import rings_of, subject_of
from tests.tpu.drawing.slices import assignment, degraded, topology


def test_each_core_has_the_device_that_the_topology_says():
    slice_ = topology("v3-32")
    subject = subject_of(slice_)
    for core in np.ndindex(*subject.task.shape):
        assert subject.task[core] == slice_.task_ordinal_at_coordinates(core)
        assert subject.device[core] == slice_.tpu_device_ordinal_at_coordinates(core)
    np.testing.assert_array_equal(subject.host, slice_.hosts)


def test_each_core_has_the_replica_that_the_assignment_says():
    drawn = assignment("v4-32", (2, 2, 1, 1), 3, megacore=True)
    subject = subject_of(drawn)
    assert (subject.num_replicas, subject.num_logical_cores) == (3, 4)
    for replica in range(3):
        for core in range(4):
            place = drawn.coordinates(replica, core)
            assert (subject.replica[place], subject.logical_core[place]) == (replica, core)
    assert (subject.replica >= 0).sum() == 12


def test_missing_devices_have_no_task():
    slice_ = degraded()
    assert sorted(map(tuple, np.argwhere(subject_of(slice_).task < 0))) == sorted(map(tuple, slice_.missing_devices))


@pytest.mark.parametrize(
    ("drawn", "title"),
    [
        (lambda: topology("v5litepod-8"), "v5litepod-8, 2x4: 8 chips, 1 host, 8 devices"),
        (degraded, "TPU v4, 2x4x4: 32 chips, 6 hosts, 24 devices"),
        (
            lambda: assignment("v3-8", (1, 1, 1, 2), 1),
            "v3-8, 2x2: 4 chips, 1 host, 8 devices; 1 replica of 2 cores, 1 of 4 chips used",
        ),
        (
            lambda: assignment("v5p-128", (2, 2, 2, 1), 8, megacore=True),
            "v5p-128, 4x4x4: 64 chips, 16 hosts, 64 devices; 8 replicas of 8 chips",
        ),
    ],
)
def test_a_title_counts_chips_hosts_devices_and_replicas(drawn, title):
    assert subject_of(drawn()).title == title


def test_the_ring_over_replicas_visits_their_first_cores():
    drawn = assignment("v4-32", (2, 2, 1, 1), 4, megacore=True)
    (ring,) = rings_of(subject_of(drawn), "replicas")
    np.testing.assert_array_equal(ring, drawn.core_assignment[:, 0])
    assert len(rings_of(subject_of(drawn), "cores")) == 4
    assert rings_of(subject_of(topology("v4-32")), "auto") == []


@pytest.mark.parametrize(("twisted", "periods"), [(False, 1), (True, 2)])
def test_only_a_twisted_torus_comes_back_along_two_axes(twisted, periods):
    subject = subject_of(topology("v5p-4x4x8", twisted=twisted))
    assert max(sum(step != 0 for step in period) for period in subject.periods) == periods
