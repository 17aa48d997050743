"""Names of ``tf.distribute.experimental``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.collectives import CollectiveHints, CommunicationImplementation, CommunicationOptions
from ringlet.module_names import list_public, load_on_use
from ringlet.strategy import CentralStorageStrategy, ValueContext

if TYPE_CHECKING:
    from ringlet.experimental import partitioners as partitioners
    from ringlet.strategy.multi_worker.multi_worker_strategy import (
        ExperimentalMultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
    )
    from ringlet.strategy.parameter_server.parameter_server_strategy import ParameterServerStrategy
    from ringlet.strategy.tpu.tpu_strategy import ExperimentalTPUStrategy as TPUStrategy
    from ringlet.train.preemption_handler import PreemptionCheckpointHandler
    from ringlet.train.termination import TerminationConfig

# The older name of the same enumeration.
CollectiveCommunication = CommunicationImplementation

_WORKERS = ".strategy.multi_worker.multi_worker_strategy"
_LATE = {
    "MultiWorkerMirroredStrategy": f"{_WORKERS}:ExperimentalMultiWorkerMirroredStrategy",
    "ParameterServerStrategy": ".strategy.parameter_server.parameter_server_strategy",
    "PreemptionCheckpointHandler": ".train.preemption_handler",
    "TPUStrategy": ".strategy.tpu.tpu_strategy:ExperimentalTPUStrategy",
    "TerminationConfig": ".train.termination",
    "partitioners": "partitioners",
}

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
    "PreemptionCheckpointHandler",
    "TPUStrategy",
    "TerminationConfig",
    "ValueContext",
    "partitioners",
]

__getattr__ = load_on_use(__name__, _LATE)
__dir__ = list_public(__name__)
