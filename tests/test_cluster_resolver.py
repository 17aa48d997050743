"""ringlet.cluster_resolver exports all resolvers."""

from __future__ import annotations

import inspect

import pytest

import ringlet
from ringlet import cluster, cluster_resolver
from ringlet.compat import tf

RESOLVERS = [name for name in cluster_resolver.__all__ if name.endswith("Resolver")]


@pytest.mark.parametrize("name", cluster_resolver.__all__)
def test_a_name_is_that_of_the_package_of_clusters(name):
    assert getattr(cluster_resolver, name) is getattr(cluster, name)


def test_names_are_tensorflow_s_and_one_that_it_has_without_publishing_it_and_one_that_starts_processes():
    more = {"SageMakerClusterResolver", "LocalClusterResolver", "MPIClusterResolver"}
    assert {*tf.distribute.cluster_resolver.__all__, *more} == set(cluster_resolver.__all__)
    assert set(tf.compat.v1.distribute.cluster_resolver.__all__) == set(tf.distribute.cluster_resolver.__all__)


@pytest.mark.parametrize("name", [name for name in RESOLVERS if name != "ClusterResolver"])
def test_what_is_beyond_tensorflow_s_signature_is_given_by_name(name):
    kind = getattr(cluster_resolver, name)
    assert issubclass(kind, cluster_resolver.ClusterResolver)
    extra = inspect.signature(kind).parameters.get("environ")
    assert extra is None or extra.kind is extra.KEYWORD_ONLY


def test_a_cluster_is_a_name_of_train_as_in_tensorflow():
    assert ringlet.train.ClusterSpec is tf.train.ClusterSpec is tf.compat.v1.train.ClusterSpec is cluster.ClusterSpec
