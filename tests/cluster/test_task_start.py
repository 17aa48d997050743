"""From a resolver to processes."""

from __future__ import annotations

import pytest

from ringlet.cluster import ClusterSpec, LocalClusterResolver, SimpleClusterResolver, start_tasks
from ringlet.errors import ClusterConfigError, DeadlineExceededError


def test_a_local_cluster_is_started_once(monkeypatch):
    monkeypatch.setattr("ringlet.cluster.resolvers.local_resolver._MAIN", "tests.cluster.echoing")
    resolver = LocalClusterResolver(1, 1)
    tasks = start_tasks(resolver, 0.0)
    assert start_tasks(resolver, 0.0) is tasks is resolver.start()
    tasks.stop()


def test_the_tasks_of_another_cluster_have_to_come(monkeypatch, name):
    monkeypatch.setenv("RINGLET_JOB_ID", name)
    resolver = SimpleClusterResolver(ClusterSpec({"worker": ["a:1"], "ps": ["b:1"]}))
    with pytest.raises(DeadlineExceededError, match=rf"worker/task:0 and /job:ps/task:0 .*_ID '{name}'"):
        start_tasks(resolver, 0.05)


def test_a_cluster_without_parameter_servers_has_no_tasks():
    with pytest.raises(ClusterConfigError, match="No such job in cluster: 'ps'"):
        start_tasks(SimpleClusterResolver(ClusterSpec({"worker": ["a:1"]})), 0.05)
