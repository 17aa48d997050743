"""Beginning and ending with the TPUs of a slice."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

import ringlet
from ringlet.tpu.topology.tpu_system import initialize_tpu_system, shutdown_tpu_system, slice_topology, tpu_devices


@pytest.fixture
def resolver() -> Iterator[ringlet.cluster_resolver.TPUClusterResolver]:
    """Of a slice with a name of its own, which is shut down at the end."""
    made = ringlet.cluster_resolver.TPUClusterResolver("a slice of this test", accelerator_type="v4-8")
    yield made
    shutdown_tpu_system(made)


def test_devices_are_there_from_the_beginning_to_the_end(resolver):
    assert resolver.num_accelerators() == {"TPU": 0}
    topology = initialize_tpu_system(resolver)
    assert topology.mesh_shape.tolist() == [2, 2, 1, 2]
    devices = tpu_devices(resolver.tpu_name)
    assert [device.name for device in devices[:2]] == [f"/job:worker/replica:0/task:0/device:TPU:{i}" for i in range(2)]
    assert set(devices) <= set(tpu_devices())
    assert resolver.num_accelerators() == {"TPU": 8}
    shutdown_tpu_system(resolver)
    assert tpu_devices(resolver.tpu_name) == ()
    assert resolver.num_accelerators() == {"TPU": 0}


def test_the_resolver_is_told_the_topology(resolver):
    assert resolver.tpu_hardware_feature is None
    initialize_tpu_system(resolver)
    assert resolver.tpu_hardware_feature is not None


def test_a_second_beginning_and_an_end_without_one_are_warned_of(resolver, caplog):
    with caplog.at_level(logging.WARNING):
        initialize_tpu_system(resolver)
        assert caplog.text == ""
        initialize_tpu_system(resolver)
        assert "has already been initialized" in caplog.text
        shutdown_tpu_system(resolver)
        shutdown_tpu_system(resolver)
    assert "has not been initialized" in caplog.text


def test_the_environment_describes_the_slice_where_no_resolver_does(monkeypatch):
    monkeypatch.setenv("TPU_ACCELERATOR_TYPE", "v5litepod-4")
    assert initialize_tpu_system().mesh_shape.tolist() == [2, 2, 1, 1]
    shutdown_tpu_system()


@pytest.mark.parametrize("begin", [initialize_tpu_system, shutdown_tpu_system])
def test_what_is_no_resolver_is_refused(begin):
    with pytest.raises(TypeError, match="TPUClusterResolver, got 5 of type int"):
        begin(5)


@pytest.mark.parametrize(
    ("accelerator_type", "environ", "num_hosts", "expected"),
    [
        # what is said first counts
        ("v5e-4", {"TPU_ACCELERATOR_TYPE": "v4-8"}, 4, [2, 2, 1, 1]),
        (None, {"TPU_ACCELERATOR_TYPE": "v4-8"}, 4, [2, 2, 1, 2]),
        (None, {"ACCELERATOR_TYPE": "v4-8"}, None, [2, 2, 1, 2]),
        (None, {"TPU_ACCELERATOR_TYPE": " "}, 4, [2, 2, 4, 2]),
        (None, {}, None, [2, 2, 2, 2]),
    ],
)
def test_a_slice_is_the_one_that_was_named(accelerator_type, environ, num_hosts, expected):
    assert slice_topology(accelerator_type, environ, num_hosts).mesh_shape.tolist() == expected


def test_unknown_slices_are_refused():
    with pytest.raises(ValueError, match="v4-9"):
        slice_topology("v4-9")
    with pytest.raises(ValueError, match="no slice of the default generation v4 has 3 hosts: name"):
        slice_topology(None, {}, 3)
