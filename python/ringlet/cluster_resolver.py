"""Cluster resolvers, which describe the cluster and the task of this process (``tf.distribute.cluster_resolver``)."""

from __future__ import annotations

from ringlet.cluster.resolvers.base_resolver import ClusterResolver
from ringlet.cluster.resolvers.gce_resolver import GCEClusterResolver
from ringlet.cluster.resolvers.kubernetes_resolver import KubernetesClusterResolver, KubernetesExecutableLocation
from ringlet.cluster.resolvers.local_resolver import LocalClusterResolver
from ringlet.cluster.resolvers.mpi_resolver import MPIClusterResolver
from ringlet.cluster.resolvers.sagemaker_resolver import SageMakerClusterResolver
from ringlet.cluster.resolvers.simple_resolver import SimpleClusterResolver
from ringlet.cluster.resolvers.slurm_resolver import SlurmClusterResolver
from ringlet.cluster.resolvers.tf_config_resolver import TFConfigClusterResolver
from ringlet.cluster.resolvers.tpu_resolver import TPUClusterResolver
from ringlet.cluster.resolvers.union_resolver import UnionResolver
from ringlet.module_names import list_public

__all__ = [
    "ClusterResolver",
    "GCEClusterResolver",
    "KubernetesClusterResolver",
    "KubernetesExecutableLocation",
    "LocalClusterResolver",
    "MPIClusterResolver",
    "SageMakerClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "TPUClusterResolver",
    "UnionResolver",
]

__dir__ = list_public(__name__)
