"""SageMakerClusterResolver: the machines of a training job, in an environment that is passed in."""

from __future__ import annotations

import json

import pytest

from ringlet.cluster import ClusterSpec, SageMakerClusterResolver
from ringlet.errors import ClusterConfigError
from tests.cluster.contract import ResolverContract

JOB = {"SM_HOSTS": '["algo-2", "algo-1"]', "SM_CURRENT_HOST": "algo-2"}


class TestSageMakerClusterResolver(ResolverContract):
    def make(self):
        return SageMakerClusterResolver(environ=JOB)


def test_hosts_are_workers_in_the_order_of_their_names():
    resolver = SageMakerClusterResolver(9000, rpc_layer="grpc", environment="sm", environ=JOB)
    assert resolver.cluster_spec().as_dict() == {"worker": ["algo-1:9000", "algo-2:9000"]}
    assert (resolver.master(), resolver.environment) == ("grpc://algo-2:9000", "sm")


def test_what_the_program_says_goes_before_the_environment():
    resolver = SageMakerClusterResolver(task_type="chief", task_id="0", environ=JOB)
    assert (resolver.task_type, resolver.task_id) == ("chief", 0)


def test_one_host_has_no_master_and_no_host_no_cluster():
    assert SageMakerClusterResolver(environ={"SM_HOSTS": '["a"]', "SM_CURRENT_HOST": "a"}).master() == ""
    empty = SageMakerClusterResolver(environ={"SM_HOSTS": "", "SM_CURRENT_HOST": "a"})
    assert (empty.cluster_spec(), empty.task_id) == (ClusterSpec({}), None)


def test_elsewhere_the_variables_that_are_missing_are_named():
    with pytest.raises(RuntimeError, match="Not a SageMaker Environment: SM_HOSTS and SM_CURRENT_HOST not set"):
        SageMakerClusterResolver(environ={}).cluster_spec()
    with pytest.raises(RuntimeError, match="SM_CURRENT_HOST not set"):
        SageMakerClusterResolver(environ={"SM_HOSTS": "[]"}).task_id  # noqa: B018


@pytest.mark.parametrize(
    ("hosts", "kind", "words"),
    [
        # SM_HOSTS, class of the error, words of it
        ("algo-1", json.JSONDecodeError, "SM_HOSTS must be JSON"),
        ('{"a": 1}', TypeError, "found {'a': 1}; allowed: a list"),
        ("[1]", TypeError, "found \\[1\\]; allowed: a list"),
        ("[" * 100_000, ValueError, "SM_HOSTS, at \\$"),
        ('["algo-1"]', ValueError, "SM_CURRENT_HOST is 'algo-2', which is not in SM_HOSTS"),
    ],
)
def test_variables_that_cannot_be_meant_are_refused(hosts, kind, words):
    with pytest.raises(ClusterConfigError, match=words) as caught:
        SageMakerClusterResolver(environ={**JOB, "SM_HOSTS": hosts}).cluster_spec()
    assert isinstance(caught.value, kind)
