"""Names of ``tf.distribute.experimental``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.module_names import list_public, load_on_use

if TYPE_CHECKING:
    from ringlet.collectives import CollectiveHints, CommunicationImplementation, CommunicationOptions
    from ringlet.experimental import partitioners as partitioners
    from ringlet.strategy.api.central_storage_strategy import CentralStorageStrategy
    from ringlet.strategy.calls.value_context import ValueContext
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
    "CentralStorageStrategy": ".strategy.api.central_storage_strategy",
    "CollectiveCommunication": ".collectives:CommunicationImplementation",
    "CollectiveHints": ".collectives",
    "CommunicationImplementation": ".collectives",
    "CommunicationOptions": ".collectives",
    "MultiWorkerMirroredStrategy": f"{_WORKERS}:ExperimentalMultiWorkerMirroredStrategy",
    "ParameterServerStrategy": ".strategy.parameter_server.parameter_server_strategy",
    "PreemptionCheckpointHandler": ".train.preemption_handler",
    "TPUStrategy": ".strategy.tpu.tpu_strategy:ExperimentalTPUStrategy",
    "TerminationConfig": ".train.termination",
    "ValueContext": ".strategy.calls.value_context",
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
