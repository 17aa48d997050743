"""The job of a coordinator and its servers."""

from __future__ import annotations

import pytest

from ringlet.cluster import ClusterSpec, ServersJob
from ringlet.errors import ClusterConfigError

CLUSTER = {"worker": ["a:1", "b:1"], "ps": ["c:1"]}


def address(job_id="", **cluster):
    return ServersJob.of(ClusterSpec({**CLUSTER, **cluster}), job_id).address(1000)


def test_all_who_know_the_same_workers_and_servers_meet_whatever_else_they_know():
    assert address() == address(chief=["d:1"]) == address(evaluator=["e:1"])
    assert address() == ServersJob.of(ClusterSpec(dict(reversed(CLUSTER.items()))), "").address(1000)


def test_other_clusters_jobs_and_users_meet_elsewhere():
    others = [address(ps=["c:2"]), address(worker=["a:1"]), address(worker=["b:1", "a:1"]), address("second")]
    others.append(ServersJob.of(ClusterSpec(CLUSTER), "").address(1001))
    assert len({address(), *others}) == 6


def test_the_coordinator_is_rank_0_and_the_tasks_follow_workers_first():
    job = ServersJob.of(ClusterSpec({"ps": ["c:1"], "worker": {3: "a:1", 1: "b:1"}}), "")
    assert job.num_ranks == 4
    assert [job.rank_of(task) for task in (("worker", 1), ("worker", 3), ("ps", 0))] == [1, 2, 3]
    assert job.who([2, 0]) == "the coordinator and /job:worker/task:3"
    assert str(job) == "the cluster of 3 servers"


@pytest.mark.parametrize("missing", ["worker", "ps"])
def test_a_cluster_without_workers_or_servers_is_refused(missing):
    with pytest.raises(ClusterConfigError, match=f"No such job in cluster: '{missing}'"):
        ServersJob.of(ClusterSpec({job: tasks for job, tasks in CLUSTER.items() if job != missing}), "")
