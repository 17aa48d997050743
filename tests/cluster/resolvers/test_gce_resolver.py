"""GCEClusterResolver: the machines of an instance group, with a client that is passed in."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from ringlet.cluster import GCEClusterResolver
from tests.cluster.contract import ResolverContract
from tests.conformance.resolver_cases import Machines

PAGES = [{"i1": "10.0.0.3"}, {"i9": "10.0.0.20", "i3": "10.0.0.4"}]


class TestGCEClusterResolver(ResolverContract):
    def make(self):
        return GCEClusterResolver("project", "zone", "group", 8470, task_id=1, service=Machines(PAGES))


def test_the_machines_of_all_pages_are_sorted_as_texts():
    spec = GCEClusterResolver("p", "z", "g", 1, "ps", service=Machines(PAGES)).cluster_spec()
    assert spec.as_dict() == {"ps": ["10.0.0.20:1", "10.0.0.3:1", "10.0.0.4:1"]}


def test_the_group_is_asked_for_by_the_names_of_the_api():
    class Asked(Machines):
        def listInstances(self, **names):
            self.names = names
            return super().listInstances(**names)

    service = Asked(PAGES)
    GCEClusterResolver("p", "z", "g", 1, service=service).cluster_spec()
    body = {"instanceState": "RUNNING"}
    assert service.names == {"project": "p", "zone": "z", "instanceGroup": "g", "body": body, "orderBy": "name"}


def test_a_group_without_machines_is_an_empty_job():
    class Empty(Machines):
        def page(self, number):
            return None if number else SimpleNamespace(number=0, execute=dict)

    assert GCEClusterResolver("p", "z", "g", 1, service=Empty([])).cluster_spec().as_dict() == {"worker": {}}


def test_the_job_cannot_be_set_again():
    resolver = GCEClusterResolver("p", "z", "g", 1, service=Machines(PAGES))
    with pytest.raises(RuntimeError, match="cannot reset the task_type of the GCEClusterResolver"):
        resolver.task_type = "ps"
    assert resolver.task_type == "worker"


def test_without_the_package_the_error_says_which_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "googleapiclient", None)
    with pytest.raises(ImportError, match=r"googleapiclient must be installed.*google-api-python-client.*service="):
        GCEClusterResolver("p", "z", "g", 1)


@pytest.mark.parametrize(("credentials", "given"), [("default", {}), ("mine", {"credentials": "mine"})])
def test_a_client_is_made_with_the_credentials_that_were_given(monkeypatch, credentials, given):
    built = []

    def build(*names, **options):
        built.append((names, options))
        return Machines(PAGES)

    package = ModuleType("googleapiclient")
    package.discovery = SimpleNamespace(build=build)
    monkeypatch.setitem(sys.modules, "googleapiclient", package)
    resolver = GCEClusterResolver("p", "z", "g", 1, credentials=credentials)
    assert resolver.cluster_spec().num_tasks("worker") == 3
    assert built == [(("compute", "v1"), given)]
