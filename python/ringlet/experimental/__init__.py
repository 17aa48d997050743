"""What ``tf.distribute.experimental`` offers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ringlet.collectives import CollectiveHints, CommunicationImplementation, CommunicationOptions
from ringlet.strategy import CentralStorageStrategy, ValueContext

if TYPE_CHECKING:
    from ringlet.strategy.multi_worker import ExperimentalMultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
    from ringlet.strategy.tpu import ExperimentalTPUStrategy as TPUStrategy

# The older name of the same enumeration.
CollectiveCommunication = CommunicationImplementation

# Loaded on first use: name -> module, and its name there.
_LATE = {
    "MultiWorkerMirroredStrategy": ("ringlet.strategy.multi_worker", "ExperimentalMultiWorkerMirroredStrategy"),
    "TPUStrategy": ("ringlet.strategy.tpu", "ExperimentalTPUStrategy"),
}

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "TPUStrategy",
    "ValueContext",
]


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    module, original = _LATE[name]
    value = globals()[name] = getattr(importlib.import_module(module), original)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
