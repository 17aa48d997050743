"""What devices a TPU system has."""

from __future__ import annotations

import pytest

from ringlet.tpu import Topology, TPUSystemMetadata
from ringlet.tpu.topology.system_metadata import SystemDevice, cores_by_host, cores_per_host, metadata_of


def names(*texts: str) -> list[SystemDevice]:
    return [SystemDevice(text, "TPU") for text in texts]


def test_a_slice_has_a_cpu_and_its_tpus_on_each_host():
    metadata = metadata_of(Topology.from_accelerator_type("v4-16"), "w")
    assert metadata[:3] == (16, 2, 8)
    assert [device.device_type for device in metadata.devices] == ["CPU", *["TPU"] * 8] * 2
    assert metadata.devices[9].name == "/job:w/replica:0/task:1/device:CPU:0"
    assert metadata.devices[-1].name == "/job:w/replica:0/task:1/device:TPU:7"
    assert cores_by_host(metadata.devices).total_cores == 16


def test_it_is_a_named_tuple_as_tensorflow_s():
    assert TPUSystemMetadata(1, 2, 3, None, ())._fields == (
        "num_cores",
        "num_hosts",
        "num_of_cores_per_host",
        "topology",
        "devices",
    )


def test_devices_are_sorted_by_their_hosts_and_others_passed_over():
    found = cores_by_host(
        names(
            "/job:w/task:0/device:CPU:0",
            "/job:w/task:1/device:TPU:0",
            "/job:w/task:0/device:TPU:5",
            "/job:w/task:0/device:TPU_SYSTEM:0",
            "/job:w/task:1/device:TPU:1",
        )
    )
    assert found == ({"1": ["0", "1"], "0": ["5"]}, 3)


@pytest.mark.parametrize("device_map", [{}, {"0": ["0"], "1": ["0", "1"]}])
def test_hosts_with_different_numbers_of_cores_are_refused(device_map):
    with pytest.raises(RuntimeError, match="TPU cores on each device is not the same"):
        cores_per_host(device_map)
