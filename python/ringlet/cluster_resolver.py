"""What tells a process which cluster it is in, and which task of it it is (``tf.distribute.cluster_resolver``)."""

from __future__ import annotations

from ringlet.cluster.gce import GCEClusterResolver
from ringlet.cluster.kubernetes import KubernetesClusterResolver, KubernetesExecutableLocation
from ringlet.cluster.local import LocalClusterResolver
from ringlet.cluster.resolver import ClusterResolver
from ringlet.cluster.sagemaker import SageMakerClusterResolver
from ringlet.cluster.simple import SimpleClusterResolver
from ringlet.cluster.slurm import SlurmClusterResolver
from ringlet.cluster.tf_config import TFConfigClusterResolver
from ringlet.cluster.tpu import TPUClusterResolver
from ringlet.cluster.union import UnionResolver

__all__ = [
    "ClusterResolver",
    "GCEClusterResolver",
    "KubernetesClusterResolver",
    "KubernetesExecutableLocation",
    "LocalClusterResolver",
    "SageMakerClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "TPUClusterResolver",
    "UnionResolver",
]
