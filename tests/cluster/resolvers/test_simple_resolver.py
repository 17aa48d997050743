"""SimpleClusterResolver says what it was told."""

from __future__ import annotations

import pytest

from ringlet.cluster import ClusterSpec, SimpleClusterResolver
from tests.cluster.contract import ResolverContract

SPEC = ClusterSpec({"worker": ["a:1", "b:2"]})


class TestSimpleClusterResolver(ResolverContract):
    def make(self):
        return SimpleClusterResolver(ClusterSpec({"worker": ["a:1", "b:2"]}), task_type="worker", task_id=1)


def test_a_task_is_named_by_job_and_index_together():
    resolver = SimpleClusterResolver(SPEC, master="m:9")
    assert [resolver.master("worker"), resolver.master(task_id=1), resolver.master("worker", 1)] == [
        "m:9",
        "m:9",
        "b:2",
    ]


def test_what_was_given_is_given_back():
    resolver = SimpleClusterResolver(SPEC, environment="google", num_accelerators={"GPU": 4}, rpc_layer="grpc")
    assert resolver.cluster_spec() is SPEC
    assert (resolver.environment, resolver.num_accelerators("worker", 0), resolver.rpc_layer) == (
        "google",
        {"GPU": 4},
        "grpc",
    )


@pytest.mark.parametrize("bad", [{"worker": ["a:1"]}, None, "x"])
def test_a_cluster_that_is_no_cluster_spec_is_refused_with_what_to_write(bad):
    with pytest.raises(TypeError, match=r"ringlet\.train\.ClusterSpec\("):
        SimpleClusterResolver(bad)


def test_a_master_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match=r"master must be a string, got 5"):
        SimpleClusterResolver(SPEC, master=5)
