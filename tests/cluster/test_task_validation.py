"""Whether a cluster and a task of it can be meant."""

from __future__ import annotations

import pytest

from ringlet.cluster import ClusterSpec
from ringlet.cluster.config_errors import Fault
from ringlet.cluster.task_validation import check_complete, check_given, check_task, num_tasks

SPEC = ClusterSpec({"worker": ["a:1", "b:1"], "ps": ["p:1"]})


def fault_of(check, *arguments):
    with pytest.raises(Fault) as caught:
        check(*arguments)
    return caught.value.keys, caught.value.allowed


@pytest.mark.parametrize(("job", "count"), [("worker", 2), ("ps", 1), ("chief", 0), (None, 0)])
def test_a_job_that_is_not_there_has_no_tasks(job, count):
    assert num_tasks(SPEC, job) == count


def test_every_task_of_the_cluster_passes():
    for job in SPEC.jobs:
        for index in SPEC.task_indices(job):
            check_given(job, index)
            check_task(SPEC, job, index)


@pytest.mark.parametrize(
    ("task_type", "task_id", "keys", "allowed"),
    [
        # task, way to the fault, what is allowed
        ("worker", 2, ("task", "index"), "0 to 1"),
        ("ps", 1, ("task", "index"), "0"),
        ("chief", 0, ("task", "type"), "'worker', 'ps'"),
        ("bogus", 0, ("task", "type"), "'chief', 'worker', 'ps' and 'evaluator'"),
    ],
)
def test_a_task_that_is_not_there_is_a_fault_of_the_task(task_type, task_id, keys, allowed):
    assert fault_of(check_task, SPEC, task_type, task_id) == (keys, allowed)


def test_a_task_that_is_not_known_is_a_fault_of_what_is_missing():
    assert fault_of(check_given, None, None)[0] == ("task",)
    assert fault_of(check_given, "worker", None)[0] == ("task", "index")


def test_workers_that_are_not_all_there_are_a_fault_of_the_cluster():
    sparse = ClusterSpec({"worker": {0: "a:1", 2: "c:1"}})
    assert fault_of(check_complete, sparse, []) == (("cluster", "worker"), "the tasks 0 to 2")
    check_complete(SPEC, [("worker", 0, "a:1"), ("worker", 1, "b:1")])


def test_a_message_about_a_large_cluster_is_short():
    with pytest.raises(Fault) as caught:
        check_task(ClusterSpec({"foo": [f"host:{port}" for port in range(10_000)]}), "worker", 0)
    assert len(caught.value.text) < 1000
