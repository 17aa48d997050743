"""Which process and which replica speaks for all: by strategy, by TF_CONFIG, by rank, or because it is alone."""

from __future__ import annotations

import json

import pytest

import ringlet
from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.errors import ClusterConfigError
from ringlet.rank_zero.process_role import of_task, standing, standing_in

CLUSTER = {"chief": ["a:1"], "worker": ["a:2", "a:3"], "ps": ["a:4"], "evaluator": ["a:5"]}


def config(task_type, index, cluster=None):
    return json.dumps({"cluster": cluster or CLUSTER, "task": {"type": task_type, "index": index}})


def test_a_program_by_itself_is_the_chief(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert ringlet.is_chief()
    assert standing().name == "w0"


@pytest.mark.parametrize(
    ("task", "index", "name", "is_chief"),
    [
        # task, index, its name, whether it speaks
        ("chief", 0, "w0", True),
        ("worker", 0, "w1", False),
        ("worker", 1, "w2", False),
        ("ps", 0, "ps0", False),
        ("evaluator", 0, "evaluator0", True),
    ],
)
def test_tf_config_tells_who_speaks(monkeypatch, task, index, name, is_chief):
    monkeypatch.setenv("TF_CONFIG", config(task, index))
    assert (standing().name, ringlet.is_chief()) == (name, is_chief)


def test_the_first_worker_speaks_where_there_is_no_chief():
    workers = [of_task(ClusterSpec({"worker": ["a:1", "a:2"]}), "worker", index) for index in (0, 1)]
    assert [worker.is_chief for worker in workers] == [True, False]


def test_ranks_of_a_process_group_are_told_by_their_variables():
    place = standing_in({"RINGLET_RANK": "2", "RINGLET_NUM_RANKS": "3"})
    assert (place.index, place.count, place.is_chief, place.neighbours) == (2, 3, False, (0, 1, 2))


def test_only_processes_of_the_same_machine_are_neighbours():
    cluster = {"worker": ["node:1", "203.0.113.9:1", "node:2"]}
    assert standing_in({"TF_CONFIG": config("worker", 2, cluster)}).neighbours == (0, 2)


def test_a_configuration_without_a_task_is_one_of_a_process_alone():
    assert standing_in({"TF_CONFIG": json.dumps({"cluster": CLUSTER})}).count == 1
    assert standing_in({"TF_CONFIG": "{}"}).is_chief


def test_a_configuration_that_cannot_be_read_is_an_error(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"cluster": 5}')
    with pytest.raises(ClusterConfigError):
        ringlet.is_chief()


def test_of_the_replicas_of_a_process_the_first_one_speaks():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    assert strategy.run(ringlet.is_chief).values == (True, False, False)
    with strategy.scope():
        assert ringlet.is_chief()


def test_replicas_of_a_process_that_is_not_the_chief_do_not_speak(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config("worker", 1))
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    assert not strategy.run(ringlet.is_chief)


def test_over_workers_one_replica_speaks(workers):
    answers = workers.run("""
        spoken = strategy.experimental_local_results(strategy.run(lambda: [ringlet.is_chief()]))
        with strategy.scope():
            inside = ringlet.is_chief()
        answer = [list(spoken), inside, ringlet.is_chief()]
    """)
    assert [answer[1:] for answer in answers] == [[True, True], [False, False]]
    spoken = [str(replica) for answer in answers for replica in answer[0]]
    assert sum(text.count("True") for text in spoken) == 1
