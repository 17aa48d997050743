"""TFConfigClusterResolver: the cluster that TF_CONFIG describes."""

from __future__ import annotations

import json

import pytest

import ringlet
from ringlet.cluster import ClusterSpec, TFConfigClusterResolver
from ringlet.errors import ClusterConfigError
from tests.cluster.contract import ResolverContract

CLUSTER = {"worker": ["a:1", "b:1"]}
TASK = {"type": "worker", "index": 1}


def environ(**config):
    return {"TF_CONFIG": json.dumps(config)}


def resolver_of(text):
    return TFConfigClusterResolver(environ={"TF_CONFIG": text})


class TestTFConfigClusterResolver(ResolverContract):
    def make(self):
        return TFConfigClusterResolver(environ=environ(cluster=CLUSTER, task=TASK))


def test_the_environment_of_the_process_is_read_at_each_access(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    resolver = TFConfigClusterResolver()
    assert resolver.cluster_spec() == ClusterSpec({})
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": CLUSTER, "task": TASK}))
    assert (resolver.cluster_spec().jobs, resolver.task_type, resolver.task_id) == (["worker"], "worker", 1)


def test_without_the_variable_there_is_one_process():
    resolver = TFConfigClusterResolver(environ={})
    assert not resolver.cluster_spec()
    assert (resolver.task_type, resolver.task_id, resolver.rpc_layer, resolver.master()) == (None, None, None, "")


def test_what_the_program_says_goes_before_the_variable():
    resolver = TFConfigClusterResolver("ps", "0", "grpc", "here", environ=environ(cluster=CLUSTER, task=TASK))
    assert (resolver.task_type, resolver.task_id, resolver.rpc_layer, resolver.environment) == ("ps", 0, "grpc", "here")


def test_the_documented_example_of_tensorflow_is_read_as_it_says():
    cluster = {"worker": ["localhost:12345", "localhost:23456"], "ps": ["localhost:34567"]}
    resolver = TFConfigClusterResolver(environ=environ(cluster=cluster, task={"type": "worker", "index": 0}))
    assert resolver.task_type == "worker"
    assert resolver.cluster_spec().as_dict() == cluster


@pytest.mark.parametrize(
    ("config", "arguments", "address"),
    [
        # TF_CONFIG, arguments of master, what it gives
        ({"cluster": CLUSTER, "task": TASK}, (), "b:1"),
        ({"cluster": CLUSTER, "task": TASK}, ("worker", 0), "a:1"),
        ({"cluster": CLUSTER, "task": TASK, "rpc_layer": "grpc"}, (), "grpc://b:1"),
        ({"cluster": CLUSTER, "task": TASK, "rpc_layer": "grpc"}, (None, 0, "http"), "http://a:1"),
        ({"cluster": CLUSTER, "task": TASK, "session_master": "m:9"}, ("worker", 0, "http"), "m:9"),
        ({"cluster": {"worker": ["a:1"]}, "task": TASK}, ("ps", 7), ""),
        ({"cluster": {"worker": {"1": "a:1"}}, "task": TASK}, (), "a:1"),
        ({"task": TASK}, (), ""),
    ],
)
def test_the_master_is_the_address_of_a_task(config, arguments, address):
    assert TFConfigClusterResolver(environ=environ(**config)).master(*arguments) == address


@pytest.mark.parametrize(
    ("config", "path", "words"),
    [
        # TF_CONFIG, place of the fault, words of the error
        ({"cluster": CLUSTER, "task": {"type": "worker", "index": 5}}, "$.task.index", "found 5; allowed: 0, 1"),
        (
            {"cluster": CLUSTER, "task": {"type": "chief", "index": 0}},
            "$.task.type",
            "found 'chief'; allowed: 'worker'",
        ),
        ({"cluster": CLUSTER, "task": {"type": "worker"}}, "$.task.index", "found nothing; allowed: 0, 1"),
        ({"cluster": CLUSTER}, "$.task.type", "found nothing; allowed: 'worker'"),
        ({"cluster": {"worker": []}, "task": TASK}, "$.task.index", "allowed: none, as there are no tasks"),
    ],
)
def test_a_task_that_the_cluster_does_not_have_is_a_fault_of_the_variable(config, path, words):
    with pytest.raises(ClusterConfigError) as caught:
        TFConfigClusterResolver(environ=environ(**config)).master()
    assert caught.value.path == path
    assert words in str(caught.value)


def test_a_task_that_the_program_asks_for_in_vain_is_no_fault_of_the_variable():
    resolver = TFConfigClusterResolver(environ=environ(cluster=CLUSTER, task=TASK))
    with pytest.raises(ClusterConfigError, match=r"No task with index 9 in job 'worker'; its tasks: 0, 1$"):
        resolver.master("worker", 9)


def test_a_wrong_task_does_not_hide_the_cluster():
    resolver = resolver_of('{"cluster": {"worker": ["a:1", "b:1"]}, "task": null}')
    assert resolver.cluster_spec() == ClusterSpec(CLUSTER)
    with pytest.raises(TypeError, match=r"at \$\.task: found 'null'"):
        resolver.task_type  # noqa: B018


def test_it_is_a_public_name_here_and_under_tf():
    assert ringlet.cluster_resolver.TFConfigClusterResolver is TFConfigClusterResolver
    assert ringlet.compat.tf.distribute.cluster_resolver.TFConfigClusterResolver is TFConfigClusterResolver
