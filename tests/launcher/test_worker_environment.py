"""What each worker is told."""

from __future__ import annotations

import json
import socket

import ringlet
from ringlet.launcher.worker_environment import unused_port, worker_environment


def test_every_worker_is_told_the_same_cluster_and_its_own_task():
    told = [json.loads(worker_environment(index, 3, "job", None, 29500)["TF_CONFIG"]) for index in range(3)]
    assert [config["task"] for config in told] == [{"type": "worker", "index": index} for index in range(3)]
    assert told[0]["cluster"] == told[1]["cluster"] == told[2]["cluster"]
    assert len(set(told[0]["cluster"]["worker"])) == 3


def test_the_resolver_of_tf_config_understands_it(monkeypatch):
    for name, value in worker_environment(1, 3, "job", None, 29500).items():
        monkeypatch.setenv(name, value)
    resolver = ringlet.cluster_resolver.TFConfigClusterResolver()
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    assert len(resolver.cluster_spec().as_dict()["worker"]) == 3


def test_a_thousand_workers_have_addresses_that_exist():
    cluster = json.loads(worker_environment(0, 1000, "job", None, 29500)["TF_CONFIG"])["cluster"]["worker"]
    assert all(int(address.rpartition(":")[2]) < 1 << 16 for address in cluster)


def test_replicas_are_told_only_where_somebody_has_asked_for_a_number():
    assert "RINGLET_NUM_DEVICES" not in worker_environment(0, 1, "job", None, 29500)
    assert worker_environment(0, 1, "job", 4, 29500)["RINGLET_NUM_DEVICES"] == "4"


def test_torch_finds_its_ranks_and_the_port():
    first, second = (worker_environment(index, 2, "job", None, 29500) for index in range(2))
    assert [each["RANK"] for each in (first, second)] == [each["LOCAL_RANK"] for each in (first, second)] == ["0", "1"]
    assert {each[name] for each in (first, second) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE")} == {"2"}
    assert first["MASTER_PORT"] == second["MASTER_PORT"] == "29500"


def test_an_unused_port_can_be_bound():
    with socket.socket() as master:
        master.bind(("127.0.0.1", unused_port()))
