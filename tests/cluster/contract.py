"""The contract of all resolvers, from whatever source they read the cluster.

A resolver's test file derives from :class:`ResolverContract` and defines how to create the resolver: for a cluster with
at least two tasks of the job ``worker`` and no other job, in the process of worker 1.
"""

from __future__ import annotations

import json
import os

import pytest

from ringlet.cluster import ClusterResolver, ClusterSpec, SimpleClusterResolver, UnionResolver
from ringlet.cluster.cluster_queries import check_workers, id_in_cluster


class ResolverContract:
    """The tests; `make` returns the resolver under test."""

    def make(self) -> ClusterResolver:
        raise NotImplementedError

    @pytest.fixture
    def resolver(self) -> ClusterResolver:
        return self.make()

    def test_it_is_a_cluster_resolver(self, resolver):
        assert isinstance(resolver, ClusterResolver)

    def test_it_gives_a_cluster_spec_which_is_the_same_when_asked_again(self, resolver):
        spec = resolver.cluster_spec()
        assert isinstance(spec, ClusterSpec)
        assert spec == resolver.cluster_spec()
        assert spec.jobs == ["worker"]
        assert spec.num_tasks("worker") >= 2

    def test_two_resolvers_of_one_cluster_agree(self, resolver):
        assert self.make().cluster_spec() == resolver.cluster_spec()

    def test_addresses_are_text_with_a_port(self, resolver):
        for address in resolver.cluster_spec().job_tasks("worker"):
            host, _, port = address.rpartition(":")
            assert host
            assert port.isdecimal()

    def test_it_knows_which_task_the_process_is(self, resolver):
        resolver.cluster_spec()
        assert (resolver.task_type, resolver.task_id) == ("worker", 1)

    def test_the_process_is_one_of_the_workers_in_rank_order(self, resolver):
        spec = resolver.cluster_spec()
        check_workers(spec, resolver.task_type, resolver.task_id)
        assert id_in_cluster(spec, resolver.task_type, resolver.task_id) == 1

    def test_the_master_of_a_named_task_is_its_address(self, resolver):
        spec = resolver.cluster_spec()
        address = spec.task_address("worker", 0)
        resolver.rpc_layer = None
        assert resolver.master("worker", 0) == address
        assert resolver.master("worker", 0, rpc_layer="grpc") == f"grpc://{address}"
        resolver.rpc_layer = "http"
        assert resolver.master("worker", 0) == f"http://{address}"

    @pytest.mark.parametrize(("job", "index", "words"), [("worker", 77, "77"), ("nobody", 0, "nobody")])
    def test_a_task_that_is_not_there_is_a_value_error_that_names_it(self, resolver, job, index, words):
        with pytest.raises(ValueError, match=words):
            resolver.master(job, index)

    def test_the_index_of_the_process_can_be_set(self, resolver):
        resolver.task_id = 0
        assert resolver.task_id == 0

    def test_accelerators_are_counted_by_kind(self, resolver):
        found = resolver.num_accelerators()
        assert all(isinstance(kind, str) and isinstance(count, int) for kind, count in found.items())

    def test_the_environment_is_a_text_or_none(self, resolver):
        assert resolver.environment is None or isinstance(resolver.environment, str)

    def test_the_environment_of_the_process_stays_as_it_was(self, resolver):
        before = dict(os.environ)
        resolver.cluster_spec()
        resolver.master()
        assert dict(os.environ) == before

    def test_a_union_of_it_alone_is_the_same_cluster(self, resolver):
        assert UnionResolver(resolver).cluster_spec() == resolver.cluster_spec()

    def test_its_cluster_can_be_handed_to_other_processes_as_json(self, resolver):
        spec = resolver.cluster_spec()
        copy = ClusterSpec(json.loads(json.dumps(spec.as_dict())))
        assert SimpleClusterResolver(copy).cluster_spec() == spec
