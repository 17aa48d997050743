"""The role of a process, from its strategy, TF_CONFIG or rank, or as a single process."""

from __future__ import annotations

import json

import pytest

import ringlet
from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.errors import ClusterConfigError
from ringlet.rank_zero.process_role import process_role, role_in_environment, role_of_task

CLUSTER = {"chief": ["a:1"], "worker": ["a:2", "a:3"], "ps": ["a:4"], "evaluator": ["a:5"]}


def config(task_type, index, cluster=None):
    return json.dumps({"cluster": cluster or CLUSTER, "task": {"type": task_type, "index": index}})


def test_a_program_by_itself_is_the_chief(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert ringlet.is_chief()
    assert process_role().name == "w0"


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
def test_tf_config_determines_the_chief(monkeypatch, task, index, name, is_chief):
    monkeypatch.setenv("TF_CONFIG", config(task, index))
    assert (process_role().name, ringlet.is_chief()) == (name, is_chief)


def test_the_first_worker_is_the_chief_if_there_is_no_other():
    workers = [role_of_task(ClusterSpec({"worker": ["a:1", "a:2"]}), "worker", index) for index in (0, 1)]
    assert [worker.is_chief for worker in workers] == [True, False]


def test_ranks_of_a_process_group_are_read_from_their_variables():
    role = role_in_environment({"RINGLET_RANK": "2", "RINGLET_NUM_RANKS": "3"})
    assert (role.index, role.count, role.is_chief, role.host_indices) == (2, 3, False, (0, 1, 2))


def test_the_variables_of_launchers_are_read(monkeypatch):
    for name, value in {"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}.items():
        monkeypatch.setenv(name, value)
    assert (ringlet.rank(), ringlet.size(), ringlet.local_rank(), ringlet.is_chief()) == (1, 4, 1, False)
    assert process_role().host_indices == (1,), "which others are on this machine is not known"


def test_a_strategy_that_spans_hosts_knows_the_workers_of_its_host(monkeypatch):
    variables = {"RANK": "2", "SIZE": "4", "LOCAL_RANK": "0", "LOCAL_SIZE": "2"}
    for name, value in variables.items():
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", value)
    strategy = ringlet.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == 4
    assert (process_role().host_indices, ringlet.local_rank()) == ((2, 3), 0)


def test_rank_and_size_are_those_of_the_task(monkeypatch):
    assert (ringlet.rank(), ringlet.size(), ringlet.local_rank()) == (0, 1, 0)
    monkeypatch.setenv("TF_CONFIG", config("worker", 1, {"worker": ["203.0.113.9:1", "node:1", "node:2"]}))
    assert (ringlet.rank(), ringlet.size(), ringlet.local_rank()) == (1, 3, 0)


def test_only_processes_of_the_same_machine_are_neighbours():
    cluster = {"worker": ["node:1", "203.0.113.9:1", "node:2"]}
    assert role_in_environment({"TF_CONFIG": config("worker", 2, cluster)}).host_indices == (0, 2)


def test_a_configuration_without_a_task_is_one_of_a_process_alone():
    assert role_in_environment({"TF_CONFIG": json.dumps({"cluster": CLUSTER})}).count == 1
    assert role_in_environment({"TF_CONFIG": "{}"}).is_chief


def test_a_configuration_that_cannot_be_read_is_an_error(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"cluster": 5}')
    with pytest.raises(ClusterConfigError):
        ringlet.is_chief()


def test_the_first_replica_of_a_process_is_its_chief():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    assert strategy.run(ringlet.is_chief).values == (True, False, False)
    with strategy.scope():
        assert ringlet.is_chief()


def test_replicas_of_other_processes_are_not_the_chief(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config("worker", 1))
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    assert not strategy.run(ringlet.is_chief)


def test_over_workers_one_replica_is_the_chief(workers):
    answers = workers.run("""
        spoken = strategy.experimental_local_results(strategy.run(lambda: [ringlet.is_chief()]))
        with strategy.scope():
            inside = ringlet.is_chief()
        answer = [list(spoken), inside, ringlet.is_chief()]
    """)
    assert [answer[1:] for answer in answers] == [[True, True], [False, False]]
    spoken = [str(replica) for answer in answers for replica in answer[0]]
    assert sum(text.count("True") for text in spoken) == 1
