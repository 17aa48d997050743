"""Connecting to clusters, of which nothing but the arguments is checked."""

from __future__ import annotations

import pytest

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.resolvers.simple_resolver import SimpleClusterResolver
from ringlet.cluster.resolvers.tpu_resolver import TPUClusterResolver
from ringlet.cluster.tf_connect import experimental_connect_to_cluster, experimental_connect_to_host

SPEC = ClusterSpec({"worker": ["a:1", "b:1"]})


@pytest.mark.parametrize(
    "cluster",
    [
        SPEC,
        SimpleClusterResolver(SPEC, task_type="worker", task_id=0),
        SimpleClusterResolver(ClusterSpec({})),
        TPUClusterResolver("local"),
        TPUClusterResolver(environ={}),
    ],
)
def test_clusters_and_resolvers_are_taken(cluster):
    assert experimental_connect_to_cluster(cluster, job_name="me", make_master_device_default=False) is None


@pytest.mark.parametrize("cluster", [5, None, {"worker": ["a:1"]}])
def test_what_is_none_is_refused(cluster):
    with pytest.raises(ValueError, match="must be a `ClusterSpec` or a `ClusterResolver`, got"):
        experimental_connect_to_cluster(cluster)


def test_a_resolver_that_cannot_tell_its_cluster_says_so():
    resolver = TPUClusterResolver("grpc://a:1", accelerator_type="v4-8", environ={})
    resolver.task_id = 7
    with pytest.raises(ValueError, match="No task with index 7"):
        experimental_connect_to_cluster(resolver)


def test_hosts_are_taken_one_or_several():
    experimental_connect_to_host("grpc://a:1")
    experimental_connect_to_host(["a:1", "b:1"], job_name="w")
    for nothing in (None, "", []):
        with pytest.raises(ValueError, match="Must provide at least one remote_host"):
            experimental_connect_to_host(nothing)
