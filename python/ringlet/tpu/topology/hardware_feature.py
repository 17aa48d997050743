"""HardwareFeature: the embedding accelerators named in a serialized topology."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from ringlet.tpu.topology import topology_proto

# Field numbers of the message.
_EMBEDDING, _DEVICES_PER_CHIP = 1, 2


@dataclass(frozen=True)
class HardwareFeatureMessage:
    """The field ``tpu_hardware_feature`` of a ``TopologyProto``."""

    embedding_feature: int = 0
    num_embedding_devices_per_chip: int = 0

    @classmethod
    def of_topology(cls, serialized: bytes) -> HardwareFeatureMessage:
        """Parse the field from a serialized topology; zeros if absent."""
        numbers = topology_proto.parse(serialized).hardware_feature
        return cls(numbers.get(_EMBEDDING, 0), numbers.get(_DEVICES_PER_CHIP, 0))


class HardwareFeature:
    """Additional features of a TPU's hardware (``tf.tpu.experimental.HardwareFeature``).

    Parameters
    ----------
    tpu_hardware_feature_proto : HardwareFeatureMessage or TensorFlow's message
        From ``resolver.tpu_hardware_feature``.

    Examples
    --------
    >>> HardwareFeature(HardwareFeatureMessage(2, 4)).embedding_feature
    <EmbeddingFeature.V2: 'V2'>
    """

    class EmbeddingFeature(enum.Enum):
        """Version of the embedding accelerators: none, first or second."""

        UNSUPPORTED = "UNSUPPORTED"
        V1 = "V1"
        V2 = "V2"

    def __init__(self, tpu_hardware_feature_proto: Any) -> None:
        self.tpu_hardware_feature_proto = tpu_hardware_feature_proto

    @property
    def embedding_feature(self) -> EmbeddingFeature:
        """The version of the embedding accelerators; UNSUPPORTED for unknown numbers."""
        known = list(HardwareFeature.EmbeddingFeature)
        number = self.tpu_hardware_feature_proto.embedding_feature
        return known[number] if 0 <= number < len(known) else HardwareFeature.EmbeddingFeature.UNSUPPORTED

    @property
    def num_embedding_devices_per_chip(self) -> int:
        """Number of embedding accelerators per chip."""
        return int(self.tpu_hardware_feature_proto.num_embedding_devices_per_chip)
