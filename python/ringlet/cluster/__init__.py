"""Clusters: cluster specs, resolvers, queries, and the registration of servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.module_names import list_public, load_on_use

if TYPE_CHECKING:
    from ringlet.cluster.cluster_def import ClusterDef, JobDef, ServerDef
    from ringlet.cluster.cluster_spec import ClusterSpec
    from ringlet.cluster.registered_tasks import Tasks, start_tasks
    from ringlet.cluster.registration import ServersJob
    from ringlet.cluster.resolvers.base_resolver import ClusterResolver
    from ringlet.cluster.resolvers.gce_resolver import GCEClusterResolver
    from ringlet.cluster.resolvers.kubernetes_resolver import KubernetesClusterResolver, KubernetesExecutableLocation
    from ringlet.cluster.resolvers.local_resolver import LocalCluster, LocalClusterResolver
    from ringlet.cluster.resolvers.mpi_resolver import MPIClusterResolver
    from ringlet.cluster.resolvers.sagemaker_resolver import SageMakerClusterResolver
    from ringlet.cluster.resolvers.simple_resolver import SimpleClusterResolver
    from ringlet.cluster.resolvers.slurm_resolver import SlurmClusterResolver
    from ringlet.cluster.resolvers.tf_config_resolver import TFConfigClusterResolver
    from ringlet.cluster.resolvers.tpu_resolver import TPUClusterResolver
    from ringlet.cluster.resolvers.union_resolver import UnionResolver
    from ringlet.cluster.worker_job_key import WorkersJob

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
    "MPIClusterResolver",
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

# Name -> module of this package. Modules load on first use, so that reading a cluster spec does not import the socket
# modules.
_HOME = {
    "ClusterDef": "cluster_def",
    "ClusterResolver": "resolvers.base_resolver",
    "ClusterSpec": "cluster_spec",
    "GCEClusterResolver": "resolvers.gce_resolver",
    "JobDef": "cluster_def",
    "KubernetesClusterResolver": "resolvers.kubernetes_resolver",
    "KubernetesExecutableLocation": "resolvers.kubernetes_resolver",
    "LocalCluster": "resolvers.local_resolver",
    "LocalClusterResolver": "resolvers.local_resolver",
    "MPIClusterResolver": "resolvers.mpi_resolver",
    "SageMakerClusterResolver": "resolvers.sagemaker_resolver",
    "ServerDef": "cluster_def",
    "ServersJob": "registration",
    "SimpleClusterResolver": "resolvers.simple_resolver",
    "SlurmClusterResolver": "resolvers.slurm_resolver",
    "TFConfigClusterResolver": "resolvers.tf_config_resolver",
    "TPUClusterResolver": "resolvers.tpu_resolver",
    "Tasks": "registered_tasks",
    "UnionResolver": "resolvers.union_resolver",
    "WorkersJob": "worker_job_key",
    "start_tasks": "registered_tasks",
}


__getattr__ = load_on_use(__name__, _HOME)
__dir__ = list_public(__name__)
