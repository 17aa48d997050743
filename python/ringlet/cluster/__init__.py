"""Which processes belong together, and how they find each other."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringlet.cluster.cluster_def import ClusterDef, JobDef
    from ringlet.cluster.cluster_spec import ClusterSpec
    from ringlet.cluster.gce import GCEClusterResolver
    from ringlet.cluster.kubernetes import KubernetesClusterResolver, KubernetesExecutableLocation
    from ringlet.cluster.local import LocalCluster, LocalClusterResolver
    from ringlet.cluster.resolver import ClusterResolver
    from ringlet.cluster.sagemaker import SageMakerClusterResolver
    from ringlet.cluster.server_def import ServerDef
    from ringlet.cluster.servers_job import ServersJob
    from ringlet.cluster.simple import SimpleClusterResolver
    from ringlet.cluster.slurm import SlurmClusterResolver
    from ringlet.cluster.starting import start_tasks
    from ringlet.cluster.tasks import Tasks
    from ringlet.cluster.tf_config import TFConfigClusterResolver
    from ringlet.cluster.tpu import TPUClusterResolver
    from ringlet.cluster.union import UnionResolver
    from ringlet.cluster.workers_job import WorkersJob

__all__ = [
    "ClusterDef",
    "ClusterResolver",
    "ClusterSpec",
    "GCEClusterResolver",
    "JobDef",
    "KubernetesClusterResolver",
    "KubernetesExecutableLocation",
    "LocalCluster",
    "LocalClusterResolver",
    "SageMakerClusterResolver",
    "ServerDef",
    "ServersJob",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "TPUClusterResolver",
    "Tasks",
    "UnionResolver",
    "WorkersJob",
    "start_tasks",
]

# Name -> module of this folder. Each is loaded on first use: reading a cluster needs no sockets, and meeting on one
# needs no resolver.
_HOME = {
    "ClusterDef": "cluster_def",
    "ClusterResolver": "resolver",
    "ClusterSpec": "cluster_spec",
    "GCEClusterResolver": "gce",
    "JobDef": "cluster_def",
    "KubernetesClusterResolver": "kubernetes",
    "KubernetesExecutableLocation": "kubernetes",
    "LocalCluster": "local",
    "LocalClusterResolver": "local",
    "SageMakerClusterResolver": "sagemaker",
    "ServerDef": "server_def",
    "ServersJob": "servers_job",
    "SimpleClusterResolver": "simple",
    "SlurmClusterResolver": "slurm",
    "TFConfigClusterResolver": "tf_config",
    "TPUClusterResolver": "tpu",
    "Tasks": "tasks",
    "UnionResolver": "union",
    "WorkersJob": "workers_job",
    "start_tasks": "starting",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
