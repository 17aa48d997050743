"""What a task is among the workers of a cluster."""

from __future__ import annotations

import json
import re

import pytest

from ringlet.cluster import ClusterSpec, SimpleClusterResolver, TFConfigClusterResolver
from ringlet.cluster.cluster_queries import (
    check_workers,
    collective_leader,
    id_in_cluster,
    is_chief,
    normalized,
    worker_count,
    worker_tasks,
)
from ringlet.errors import ClusterConfigError

FULL = {"ps": ["p:1"], "worker": ["a:1", "b:1"], "evaluator": ["e:1"], "chief": ["c:1"]}
WORKERS = {"worker": ["a:1", "b:1", "c:1"]}


def test_the_chief_is_first_and_workers_follow_in_their_order():
    tasks = worker_tasks(FULL)
    assert tasks == [("chief", 0, "c:1"), ("worker", 0, "a:1"), ("worker", 1, "b:1")]
    assert [id_in_cluster(FULL, job, index) for job, index, _ in tasks] == [0, 1, 2]
    assert worker_count(FULL, "worker") == worker_count(FULL, "chief") == len(tasks)


def test_without_a_chief_worker_0_is_one():
    assert [is_chief(WORKERS, "worker", index) for index in range(3)] == [True, False, False]
    assert is_chief(FULL, "chief", 0)
    assert not is_chief(FULL, "worker", 0)


def test_an_evaluator_is_its_own_chief_and_no_worker():
    assert is_chief(FULL, "evaluator", 0)
    assert is_chief(WORKERS, "evaluator", 0), "it need not be in the cluster"
    assert (id_in_cluster(FULL, "evaluator", 0), worker_count(FULL, "evaluator")) == (0, 1)
    assert collective_leader(FULL, "evaluator", 0) == ""


def test_the_leader_is_the_chief_or_worker_0():
    assert collective_leader(FULL, "worker", 1) == "/job:chief/replica:0/task:0"
    assert collective_leader(WORKERS, "worker", 1) == "/job:worker/replica:0/task:0"
    assert collective_leader({}, "worker", 0) == ""
    with pytest.raises(ValueError, match="neither a chief nor a worker"):
        collective_leader({"ps": ["p:1"]}, "ps", 0)


def test_a_cluster_may_be_given_in_three_ways():
    spec = ClusterSpec(WORKERS)
    assert normalized(spec) is spec
    assert normalized(WORKERS) == normalized(spec.as_cluster_def()) == spec
    with pytest.raises(ValueError, match=r"should be dict or a `tf.train.ClusterSpec`.*not \['a:1'\]"):
        normalized(["a:1"])


@pytest.mark.parametrize(
    ("cluster", "task_type", "task_id", "words"),
    [
        # cluster, task, words of the error
        ({"foo": ["x:1"]}, "worker", 0, "Disallowed task type found in cluster spec"),
        (WORKERS, "bogus", 0, "Unrecognized task_type: bogus"),
        (WORKERS, "chief", 0, "`task_type` 'chief' not found in cluster_spec"),
        ({"chief": ["a:1", "b:1"]}, "chief", 0, "at most one 'chief' job.*found ..a:1., .b:1..; allowed: one chief"),
        ({"evaluator": ["a:1", "b:1"]}, "evaluator", 0, "at most one 'evaluator' job"),
        (
            WORKERS,
            "worker",
            7,
            "The `task_id` 7 exceeds the maximum id of worker.*index: found 7; allowed: 0 to 2",
        ),
        ({"worker": []}, "worker", 0, "exceeds the maximum id of worker.*allowed: none, as there are no tasks"),
        (FULL, "ps", 0, "There is no id for task_type 'ps'"),
        (FULL, None, 0, "There is no id for task_type None"),
    ],
)
def test_a_task_that_cannot_be_is_refused(cluster, task_type, task_id, words):
    with pytest.raises(ValueError, match=words):
        id_in_cluster(cluster, task_type, task_id)
    with pytest.raises(ValueError, match="When `cluster_spec` is given" if task_type is None else words):
        check_workers(cluster, task_type, task_id)


def test_parameter_servers_do_not_count_workers():
    with pytest.raises(ValueError, match="Unexpected `task_type` 'ps'"):
        worker_count(FULL, "ps")
    with pytest.raises(ValueError, match="No such job in cluster: 'evaluator'"):
        worker_count(WORKERS, "evaluator")


def test_an_index_that_is_not_known_is_asked_for():
    with pytest.raises(TypeError, match="`task_id` must be given with `task_type` 'worker'"):
        is_chief(WORKERS, "worker", None)
    with pytest.raises(
        ValueError, match=r"you must also specify `task_type` and `task_id`\..* at \$\.task\.index: found nothing"
    ):
        check_workers(WORKERS, "worker", None)


@pytest.mark.parametrize(
    ("cluster", "path", "words"),
    [
        # cluster, place of the fault, words of the error
        ({"worker": {0: "a:1", 2: "c:1"}}, "$.cluster.worker", "worker 1 is missing.*the tasks 0 to 2"),
        (
            {"worker": {0: "a:1", 1: "a:1"}},
            "$.cluster.worker[1]",
            "worker 0 and worker 1 have the same address.*found 'a:1'",
        ),
        ({"worker": ["a:1"], "chief": ["a:1"]}, "$.cluster.worker[0]", "chief 0 and worker 0 have the same address"),
    ],
)
def test_workers_that_cannot_meet_are_refused_with_the_place(cluster, path, words):
    with pytest.raises(ClusterConfigError, match=words) as caught:
        check_workers(cluster, "worker", 0)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("config", "path", "better"),
    [
        # TF_CONFIG, place of the fault, the task of the corrected text; None if nobody can know it
        ({"cluster": WORKERS, "task": {"type": "worker", "index": 3}}, "$.task.index", {"type": "worker", "index": 0}),
        ({"cluster": WORKERS, "task": {"type": "chief", "index": 1}}, "$.task.type", {"type": "worker", "index": 1}),
        ({"cluster": WORKERS, "task": {"type": "bogus", "index": 1}}, "$.task.type", {"type": "worker", "index": 1}),
        ({"cluster": WORKERS, "task": {"type": "worker"}}, "$.task.index", {"type": "worker", "index": 0}),
        ({"cluster": WORKERS}, "$.task", {"type": "worker", "index": 0}),
        ({"cluster": FULL, "task": {"type": "ps", "index": 0}}, "$.task.type", None),
        ({"cluster": WORKERS, "task": {"type": "Workers", "index": 1}}, "$.task.type", {"type": "worker", "index": 1}),
        ({"cluster": {"foo": ["x:1"]}, "task": {"type": "foo", "index": 0}}, "$.cluster.foo", None),
    ],
)
def test_a_fault_of_tf_config_is_shown_in_it_with_a_corrected_text(config, path, better):
    resolver = TFConfigClusterResolver(environ={"TF_CONFIG": json.dumps(config)})
    with pytest.raises(ClusterConfigError, match=rf"TF_CONFIG, at {re.escape(path)}: found") as caught:
        check_workers(resolver.cluster_spec(), resolver.task_type, resolver.task_id, resolver)
    assert caught.value.path == path
    if better is None:
        assert "For example: TF_CONFIG=" in str(caught.value)
        return
    # Any index is right for some worker.
    heading = "Corrected" if path == "$.task.type" else r"Give each task its own index\. For worker 0"
    shown = json.loads(re.search(rf"{heading}: TF_CONFIG='(.*)'$", str(caught.value))[1])
    assert "None" not in str(caught.value)
    assert shown == {**config, "task": better}
    check_workers(shown["cluster"], *shown["task"].values())


@pytest.mark.parametrize("task_type", ["worker", "workers"])
def test_a_misspelt_job_is_named_with_the_nearest_one_and_corrected(task_type):
    config = {"cluster": {"workers": ["a:1", "b:1"]}, "task": {"type": task_type, "index": 1}}
    resolver = TFConfigClusterResolver(environ={"TF_CONFIG": json.dumps(config)})
    with pytest.raises(ClusterConfigError, match=r"at \$.cluster.workers: .*; the nearest is 'worker'\.") as caught:
        check_workers(resolver.cluster_spec(), resolver.task_type, resolver.task_id, resolver)
    assert "None" not in str(caught.value)
    shown = json.loads(re.search(r"Corrected: TF_CONFIG='(.*)'$", str(caught.value))[1])
    assert shown == {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}


def test_the_only_index_is_a_correction():
    resolver = TFConfigClusterResolver(
        environ={"TF_CONFIG": '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}'}
    )
    with pytest.raises(ClusterConfigError, match=r'Corrected: .*"index": 0'):
        check_workers(resolver.cluster_spec(), "worker", 1, resolver)


def test_a_fault_of_another_resolver_names_it():
    resolver = SimpleClusterResolver(ClusterSpec(WORKERS), task_type="worker", task_id=7)
    with pytest.raises(ClusterConfigError, match=r"SimpleClusterResolver, at \$\.task\.index: found 7"):
        check_workers(resolver.cluster_spec(), "worker", 7, resolver)
    config = TFConfigClusterResolver(task_id=7, environ={"TF_CONFIG": json.dumps({"cluster": WORKERS})})
    with pytest.raises(ClusterConfigError, match=r"TFConfigClusterResolver, at"):
        check_workers(config.cluster_spec(), "worker", config.task_id, config)


def test_a_task_counted_from_the_end_is_refused():
    with pytest.raises(ClusterConfigError, match="worker -1 does not exist"):
        check_workers(WORKERS, "worker", -1)


def test_clusters_that_can_meet_pass():
    for job, index, _ in worker_tasks(FULL):
        check_workers(FULL, job, index)
    check_workers({**FULL, "ps": ["a:1"]}, "worker", 0)  # parameter servers do not meet the workers
