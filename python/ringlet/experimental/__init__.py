"""Names of ``tf.distribute.experimental``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.module_names import list_public, load_on_use

if TYPE_CHECKING:
    from ringlet.collectives import CollectiveHints as CollectiveHints
    from ringlet.collectives import CommunicationImplementation as CommunicationImplementation
    from ringlet.collectives import CommunicationOptions as CommunicationOptions
    from ringlet.experimental import partitioners as partitioners
    from ringlet.strategy.api.central_storage_strategy import CentralStorageStrategy as CentralStorageStrategy
    from ringlet.strategy.calls.value_context import ValueContext as ValueContext
    from ringlet.strategy.multi_worker.multi_worker_strategy import ExperimentalMultiWorkerMirroredStrategy
    from ringlet.strategy.parameter_server.parameter_server_strategy import (
        ParameterServerStrategy as ParameterServerStrategy,
    )
    from ringlet.strategy.tpu.tpu_strategy import ExperimentalTPUStrategy
    from ringlet.train.preemption_handler import PreemptionCheckpointHandler as PreemptionCheckpointHandler
    from ringlet.train.termination import TerminationConfig as TerminationConfig

    CollectiveCommunication = CommunicationImplementation  # the older name of the same enumeration
    MultiWorkerMirroredStrategy = ExperimentalMultiWorkerMirroredStrategy
    TPUStrategy = ExperimentalTPUStrategy

# Public name -> module that defines it, and its name there if it differs.
_PUBLIC = {
    "CentralStorageStrategy": ".strategy.api.central_storage_strategy",
    "CollectiveCommunication": ".collectives:CommunicationImplementation",
    "CollectiveHints": ".collectives",
    "CommunicationImplementation": ".collectives",
    "CommunicationOptions": ".collectives",
    "MultiWorkerMirroredStrategy": ".strategy.multi_worker.multi_worker_strategy"
    ":ExperimentalMultiWorkerMirroredStrategy",
    "ParameterServerStrategy": ".strategy.parameter_server.parameter_server_strategy",
    "PreemptionCheckpointHandler": ".train.preemption_handler",
    "TPUStrategy": ".strategy.tpu.tpu_strategy:ExperimentalTPUStrategy",
    "TerminationConfig": ".train.termination",
    "ValueContext": ".strategy.calls.value_context",
    "partitioners": "partitioners",
}
__all__ = list(_PUBLIC)

__getattr__ = load_on_use(__name__, _PUBLIC)
__dir__ = list_public(__name__)
