"""What ``tf.distribute.experimental`` offers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ringlet.collectives import CollectiveHints, CommunicationImplementation, CommunicationOptions
from ringlet.strategy import CentralStorageStrategy, ValueContext

if TYPE_CHECKING:
    from ringlet.experimental import partitioners as partitioners
    from ringlet.strategy.multi_worker.multi_worker_strategy import (
        ExperimentalMultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
    )
    from ringlet.strategy.parameter_server.parameter_server_strategy import ParameterServerStrategy
    from ringlet.strategy.tpu.tpu_strategy import ExperimentalTPUStrategy as TPUStrategy

# The older name of the same enumeration.
CollectiveCommunication = CommunicationImplementation

# Loaded on first use: name -> module, and its name there; none for the module itself.
_LATE = {
    "MultiWorkerMirroredStrategy": (
        "ringlet.strategy.multi_worker.multi_worker_strategy",
        "ExperimentalMultiWorkerMirroredStrategy",
    ),
    "ParameterServerStrategy": (
        "ringlet.strategy.parameter_server.parameter_server_strategy",
        "ParameterServerStrategy",
    ),
    "TPUStrategy": ("ringlet.strategy.tpu.tpu_strategy", "ExperimentalTPUStrategy"),
    "partitioners": ("ringlet.experimental.partitioners", ""),
}

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
    "TPUStrategy",
    "ValueContext",
    "partitioners",
]


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    place, original = _LATE[name]
    module = importlib.import_module(place)
    value = globals()[name] = getattr(module, original) if original else module
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
