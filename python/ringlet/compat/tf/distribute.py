"""``tf.distribute``: strategies, replica contexts and distributed values."""

from __future__ import annotations

from typing import Any

import ringlet.experimental as ringlet_experimental
from ringlet import cluster_resolver as ringlet_cluster_resolver
from ringlet import data
from ringlet.collectives import ReduceOp
from ringlet.compat.tensorflow.absent import absent_getter, namespace
from ringlet.compat.tensorflow.coordinator import ClusterCoordinator, experimental_get_current_worker_index
from ringlet.compat.tensorflow.parameter_server import ParameterServerStrategy, ParameterServerStrategyV1
from ringlet.compat.tensorflow.strategies import (
    CentralStorageStrategy,
    CentralStorageStrategyV1,
    MirroredStrategy,
    MirroredStrategyV1,
    MultiWorkerMirroredStrategy,
    MultiWorkerMirroredStrategyExperimental,
    MultiWorkerMirroredStrategyV1,
    OneDeviceStrategy,
    OneDeviceStrategyV1,
    StrategyV1,
    get_replica_context,
)
from ringlet.compat.tensorflow.tpu_strategies import ExperimentalTPUStrategy, TPUStrategy, TPUStrategyV1
from ringlet.compat.tf import tpu
from ringlet.coordinator import PerWorkerValues, RemoteValue, Server
from ringlet.experimental import partitioners
from ringlet.module_names import list_public
from ringlet.strategy.api.cross_device_ops import CrossDeviceOps, HierarchicalCopyAllReduce, NcclAllReduce
from ringlet.strategy.api.current_strategy import (
    experimental_set_strategy,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from ringlet.strategy.api.extended import StrategyExtended
from ringlet.strategy.api.reduction_to_one_device import ReductionToOneDevice
from ringlet.strategy.api.strategy import Strategy
from ringlet.strategy.calls.run_options import RunOptions
from ringlet.strategy.replica.replica_context import ReplicaContext
from ringlet.train import ClusterSpec
from ringlet.values import DistributedValues, Mirrored, PerReplica

__all__ = [
    "CrossDeviceOps",
    "DistributedDataset",
    "DistributedIterator",
    "DistributedValues",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputOptions",
    "InputReplicationMode",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ParameterServerStrategy",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "RunOptions",
    "Server",
    "Strategy",
    "StrategyExtended",
    "TPUStrategy",
    "cluster_resolver",
    "coordinator",
    "experimental",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]

DistributedDataset = data.DistributedDataset
DistributedIterator = data.DistributedIterator
InputContext = data.InputContext
InputOptions = data.InputOptions
InputReplicationMode = data.InputReplicationMode

_RESOLVERS = {
    name: getattr(ringlet_cluster_resolver, name)
    for name in ringlet_cluster_resolver.__all__
    # tf.distribute.cluster_resolver does not have these names.
    if name not in {"SageMakerClusterResolver", "LocalClusterResolver", "MPIClusterResolver"}
}
cluster_resolver = namespace("tf.distribute.cluster_resolver", "Cluster resolvers.", _RESOLVERS)

coordinator = namespace(
    "tf.distribute.coordinator",
    "Coordinator of functions on the workers of a cluster.",
    {
        "ClusterCoordinator": ClusterCoordinator,
        "PerWorkerValue": PerWorkerValues,
        "RemoteValue": RemoteValue,
        "experimental_get_current_worker_index": experimental_get_current_worker_index,
    },
)

experimental = namespace(
    "tf.distribute.experimental",
    "Experimental names of tf.distribute.",
    {
        **{name: getattr(ringlet_experimental, name) for name in ringlet_experimental.__all__},
        "CentralStorageStrategy": CentralStorageStrategy,
        "MultiWorkerMirroredStrategy": MultiWorkerMirroredStrategyExperimental,
        "ParameterServerStrategy": ParameterServerStrategy,
        "TPUStrategy": ExperimentalTPUStrategy,
        "coordinator": namespace(
            "tf.distribute.experimental.coordinator",
            "Coordinator of functions on the workers of a cluster.",
            {"ClusterCoordinator": ClusterCoordinator, "PerWorkerValues": PerWorkerValues, "RemoteValue": RemoteValue},
        ),
        "partitioners": namespace(
            "tf.distribute.experimental.partitioners",
            "Partitioners of variables.",
            {name: getattr(partitioners, name) for name in partitioners.__all__},
        ),
    },
)


def get_loss_reduction() -> ReduceOp:
    """Return the default reduction of the replicas' losses.

    Returns
    -------
    ReduceOp
        SUM.

    Examples
    --------
    >>> get_loss_reduction()
    <ReduceOp.SUM: 'SUM'>
    """
    return ReduceOp.SUM


_COMMUNICATION = ("CollectiveCommunication", "CollectiveHints", "CommunicationImplementation", "CommunicationOptions")


def _by_name(*values: Any) -> dict[str, Any]:
    return {value.__name__: value for value in values}


_V1: dict[str, Any] = {
    **_by_name(CrossDeviceOps, HierarchicalCopyAllReduce, NcclAllReduce, ReductionToOneDevice, ReduceOp),
    **_by_name(InputContext, InputReplicationMode, ReplicaContext, RunOptions, Server, StrategyExtended),
    **_by_name(experimental_set_strategy, get_loss_reduction, get_replica_context, get_strategy, has_strategy),
    **_by_name(in_cross_replica_context),
    "MirroredStrategy": MirroredStrategyV1,
    "OneDeviceStrategy": OneDeviceStrategyV1,
    "Strategy": StrategyV1,
    "cluster_resolver": namespace("tf.compat.v1.distribute.cluster_resolver", "Cluster resolvers.", _RESOLVERS),
    "experimental": namespace(
        "tf.compat.v1.distribute.experimental",
        "Experimental names of tf.compat.v1.distribute.",
        {
            "CentralStorageStrategy": CentralStorageStrategyV1,
            **{name: getattr(ringlet_experimental, name) for name in _COMMUNICATION},
            "MultiWorkerMirroredStrategy": MultiWorkerMirroredStrategyV1,
            "ParameterServerStrategy": ParameterServerStrategyV1,
            "TPUStrategy": TPUStrategyV1,
        },
    ),
}

# tf.compat has names of TensorFlow 1; tf.types has the classes of distributed values.
compat = namespace(
    "tf.compat",
    "Names of other TensorFlow versions.",
    {
        "v1": namespace(
            "tf.compat.v1",
            "TensorFlow 1.",
            {
                "distribute": namespace("tf.compat.v1.distribute", "Strategies with TensorFlow 1's interface.", _V1),
                "tpu": namespace("tf.compat.v1.tpu", "TPU slices.", {"experimental": tpu.experimental}),
                "train": namespace("tf.compat.v1.train", "Clusters.", {"ClusterSpec": ClusterSpec, "Server": Server}),
            },
        )
    },
)
types = namespace(
    "tf.types",
    "Types for isinstance checks.",
    {
        "experimental": namespace(
            "tf.types.experimental",
            "Experimental types for isinstance checks.",
            {
                "distributed": namespace(
                    "tf.types.experimental.distributed",
                    "The classes of distributed values.",
                    {"Mirrored": Mirrored, "PerReplica": PerReplica},
                )
            },
        )
    },
)

__getattr__ = absent_getter("tf.distribute", __all__)
__dir__ = list_public(__name__)
