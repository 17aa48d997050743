"""What a topology's bytes say about embedding accelerators."""

from __future__ import annotations

import pytest

from ringlet.tpu import HardwareFeature, Topology
from ringlet.tpu.topology.hardware_feature import HardwareFeatureMessage

Feature = HardwareFeature.EmbeddingFeature


@pytest.mark.parametrize(
    ("data", "feature", "devices"),
    [
        (b"", Feature.UNSUPPORTED, 0),
        (Topology.from_accelerator_type("v4-8").serialized(), Feature.UNSUPPORTED, 0),
        (bytes([0x2A, 0]), Feature.UNSUPPORTED, 0),
        (bytes([0x2A, 2, 8, 1]), Feature.V1, 0),
        (bytes([0x2A, 4, 8, 2, 16, 4]), Feature.V2, 4),
        (bytes([0x10, 1, 0x2A, 2, 16, 4, 0x2A, 2, 8, 2]), Feature.V2, 4),  # in two parts, behind another field
        (bytes([0x2A, 2, 8, 9]), Feature.UNSUPPORTED, 0),  # a number of a later version
    ],
)
def test_the_message_in_a_topology_is_read(data, feature, devices):
    found = HardwareFeature(HardwareFeatureMessage.of_topology(data))
    assert found.embedding_feature is feature
    assert found.num_embedding_devices_per_chip == devices


@pytest.mark.parametrize("data", [b"\xff", bytes([0x2A, 9, 8]), bytes([0x2A, 1, 8])])
def test_bytes_that_are_no_topology_are_refused(data):
    with pytest.raises(ValueError, match="no serialized TopologyProto"):
        HardwareFeatureMessage.of_topology(data)
