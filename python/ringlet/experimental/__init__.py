"""What ``tf.distribute.experimental`` offers."""

from __future__ import annotations

from ringlet.collectives import CollectiveHints, CommunicationImplementation, CommunicationOptions
from ringlet.strategy import CentralStorageStrategy, ValueContext

# The older name of the same enumeration.
CollectiveCommunication = CommunicationImplementation

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "ValueContext",
]
