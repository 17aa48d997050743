"""KubernetesClusterResolver: the pods that labels select, with a client that is passed in."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from ringlet.cluster import KubernetesClusterResolver, KubernetesExecutableLocation
from tests.cluster.contract import ResolverContract
from tests.conformance.resolver_cases import Pods


def pod(name, ip, phase="Running"):
    return {"name": name, "ip": ip, "phase": phase}


PODS = {"job-name=tensorflow": [pod("b", "10.0.0.2"), pod("a", "10.0.0.1")], "app=ps": [pod("p", "10.0.1.1")]}


class TestKubernetesClusterResolver(ResolverContract):
    def make(self):
        resolver = KubernetesClusterResolver(override_client=Pods(PODS))
        resolver.task_type, resolver.task_id = "worker", 1
        return resolver


def test_the_pods_of_each_selector_are_sorted_by_name():
    mapping = {"worker": ["app=ps", "job-name=tensorflow"], "ps": ["app=none"]}
    spec = KubernetesClusterResolver(mapping, 9, override_client=Pods(PODS)).cluster_spec()
    assert spec.as_dict() == {"worker": ["10.0.1.1:9", "10.0.0.1:9", "10.0.0.2:9"], "ps": {}}


def test_pods_are_asked_for_each_time():
    client = Pods(dict(PODS))
    resolver = KubernetesClusterResolver(override_client=client)
    resolver.cluster_spec()
    client.pods["job-name=tensorflow"] = [pod("c", "10.0.0.3")]
    assert resolver.cluster_spec().job_tasks("worker") == ["10.0.0.3:8470"]


def test_a_pod_that_does_not_run_is_named_with_what_to_wait_for():
    client = Pods({"job-name=tensorflow": [pod("a", "10.0.0.1"), pod("z", "10.0.0.9", "Pending")]})
    with pytest.raises(RuntimeError, match=r'Pod "z" is not running; phase: "Pending". Wait .* kubectl wait'):
        KubernetesClusterResolver(override_client=client).cluster_spec()


def test_without_the_package_the_error_says_which_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(ImportError, match=r"pip install kubernetes`.*override_client="):
        KubernetesClusterResolver()


@pytest.mark.parametrize(
    ("location", "loaded"),
    [
        (KubernetesExecutableLocation.WITHIN_CLUSTER, "load_incluster_config"),
        (KubernetesExecutableLocation.OFF_CLUSTER, "load_kube_config"),
    ],
)
def test_a_client_is_made_with_the_settings_of_the_place(monkeypatch, location, loaded):
    called = []
    package, config, client = (ModuleType(name) for name in ("kubernetes", "config", "client"))
    config.load_incluster_config = lambda: called.append("load_incluster_config")
    config.load_kube_config = lambda: called.append("load_kube_config")
    client.CoreV1Api = lambda: Pods(PODS)
    package.config, package.client = config, client
    monkeypatch.setitem(sys.modules, "kubernetes", package)
    resolver = KubernetesClusterResolver(executable_location=location)
    assert resolver.cluster_spec().num_tasks("worker") == 2
    assert called == [loaded]


def test_another_location_is_refused():
    with pytest.raises(ValueError, match=r"The executable location provided is invalid. Expected .*, got 7"):
        KubernetesClusterResolver(executable_location=7)
