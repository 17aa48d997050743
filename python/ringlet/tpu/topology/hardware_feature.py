"""HardwareFeature: what the bytes of a topology say about embedding accelerators."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from ringlet.tpu.topology.topology_proto import single_numbers

__all__ = ["HardwareFeature", "HardwareFeatureMessage"]

# Of TopologyProto, and of the message in it.
_FEATURE = 5
_EMBEDDING, _DEVICES_PER_CHIP = 1, 2


@dataclass(frozen=True)
class HardwareFeatureMessage:
    """The field ``tpu_hardware_feature`` of a ``TopologyProto``.

    Attributes
    ----------
    embedding_feature : int
        0, 1 or 2: the number of a :class:`HardwareFeature.EmbeddingFeature`.
    num_embedding_devices_per_chip : int
    """

    embedding_feature: int = 0
    num_embedding_devices_per_chip: int = 0

    @classmethod
    def of_topology(cls, serialized: bytes) -> HardwareFeatureMessage:
        """Read it from the bytes of a topology; zeros where they say nothing.

        Parameters
        ----------
        serialized : bytes

        Raises
        ------
        ValueError
            If the bytes are no such message.

        Examples
        --------
        >>> HardwareFeatureMessage.of_topology(bytes([0x2A, 2, 8, 2]))
        HardwareFeatureMessage(embedding_feature=2, num_embedding_devices_per_chip=0)
        """
        numbers = single_numbers(serialized, _FEATURE)
        return cls(numbers.get(_EMBEDDING, 0), numbers.get(_DEVICES_PER_CHIP, 0))


class HardwareFeature:
    """What a TPU's hardware can do besides (``tf.tpu.experimental.HardwareFeature``).

    Parameters
    ----------
    tpu_hardware_feature_proto : HardwareFeatureMessage or TensorFlow's message
        What ``resolver.tpu_hardware_feature`` gave.

    Examples
    --------
    >>> HardwareFeature(HardwareFeatureMessage(2, 4)).embedding_feature
    <EmbeddingFeature.V2: 'V2'>
    """

    class EmbeddingFeature(enum.Enum):
        """Which embedding accelerators there are: none, those of the first kind, or of the second."""

        UNSUPPORTED = "UNSUPPORTED"
        V1 = "V1"
        V2 = "V2"

    def __init__(self, tpu_hardware_feature_proto: Any) -> None:
        self.tpu_hardware_feature_proto = tpu_hardware_feature_proto

    @property
    def embedding_feature(self) -> EmbeddingFeature:
        """Which embedding accelerators there are; UNSUPPORTED for numbers that are not known."""
        known = list(HardwareFeature.EmbeddingFeature)
        number = self.tpu_hardware_feature_proto.embedding_feature
        return known[number] if 0 <= number < len(known) else HardwareFeature.EmbeddingFeature.UNSUPPORTED

    @property
    def num_embedding_devices_per_chip(self) -> int:
        """How many embedding accelerators each chip has."""
        return int(self.tpu_hardware_feature_proto.num_embedding_devices_per_chip)
