"""UnionResolver: the clusters of several resolvers as one."""

from __future__ import annotations

import pytest

from ringlet.cluster import ClusterSpec, SimpleClusterResolver, UnionResolver
from tests.cluster.contract import ResolverContract


def simple(cluster, **kwargs):
    return SimpleClusterResolver(ClusterSpec(cluster), **kwargs)


class TestUnionResolver(ResolverContract):
    def make(self):
        return UnionResolver(simple({"worker": ["a:1"]}), simple({"worker": ["b:2"]}), task_type="worker", task_id=1)


def test_lists_of_a_job_stand_behind_each_other():
    union = UnionResolver(simple({"worker": ["a:1"], "ps": ["p:1"]}), simple({"worker": ["b:1", "c:1"]}))
    assert union.cluster_spec().as_dict() == {"worker": ["a:1", "b:1", "c:1"], "ps": ["p:1"]}


def test_where_one_job_is_sparse_its_indices_count():
    union = UnionResolver(simple({"worker": ["a:1"]}), simple({"worker": {3: "d:1"}}))
    assert union.cluster_spec().as_dict() == {"worker": {0: "a:1", 3: "d:1"}}


def test_one_index_twice_is_a_key_error_that_names_index_and_job():
    union = UnionResolver(simple({"worker": {1: "a:1"}}), simple({"worker": {1: "b:1"}}))
    with pytest.raises(KeyError, match=r"Duplicate keys detected when merging two ClusterSpecs: \{1\}.*'worker'"):
        union.cluster_spec()


def test_the_first_resolver_answers_for_everything_else():
    first = simple({"ps": ["p:1"]}, task_type="ps", task_id=3, rpc_layer="grpc", environment="here", master="m:1")
    union = UnionResolver(first, simple({"worker": ["a:1"]}, task_type="worker", task_id=9))
    assert (union.task_type, union.task_id, union.rpc_layer, union.environment) == ("ps", 3, "grpc", "here")
    assert union.master() == "grpc://m:1"
    assert union.num_accelerators() == {}


def test_what_is_given_goes_before_the_first_resolver():
    union = UnionResolver(simple({"worker": ["a:1"]}, task_id=1), task_type="worker", task_id=2, rpc_layer="x")
    assert (union.task_type, union.task_id, union.rpc_layer) == ("worker", 2, "x")
    union.task_type, union.task_id, union.rpc_layer = "ps", 4, "y"
    assert (union.task_type, union.task_id, union.rpc_layer) == ("ps", 4, "y")


def test_the_first_task_can_be_set():
    union = UnionResolver(simple({"worker": ["a:1", "b:1"]}, task_id=1), task_id=0)
    assert union.task_id == 1
    union.task_id = 0
    assert union.task_id == 0


def test_no_resolver_other_objects_and_other_names_are_refused():
    with pytest.raises(ValueError, match="At least one ClusterResolver"):
        UnionResolver()
    with pytest.raises(TypeError, match=r"sub-class of `ClusterResolver.` One is 'x'"):
        UnionResolver("x")
    with pytest.raises(ValueError, match=r"Unexpected kwargs provided \{'bogus': 1\}"):
        UnionResolver(simple({}), bogus=1)
