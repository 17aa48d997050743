"""Cluster resolvers, which describe the cluster and the task of this process (``tf.distribute.cluster_resolver``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.module_names import list_public, load_on_use

if TYPE_CHECKING:
    from ringlet.cluster import (
        ClusterResolver,
        GCEClusterResolver,
        KubernetesClusterResolver,
        KubernetesExecutableLocation,
        LocalClusterResolver,
        MPIClusterResolver,
        SageMakerClusterResolver,
        SimpleClusterResolver,
        SlurmClusterResolver,
        TFConfigClusterResolver,
        TPUClusterResolver,
        UnionResolver,
    )

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

__getattr__ = load_on_use(__name__, dict.fromkeys(__all__, ".cluster"))
__dir__ = list_public(__name__)
