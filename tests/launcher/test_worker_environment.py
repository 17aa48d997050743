"""What each worker is told."""

from __future__ import annotations

import json

import ringlet
from ringlet.launcher.worker_environment import worker_environment


def test_every_worker_is_told_the_same_cluster_and_its_own_task():
    told = [json.loads(worker_environment(index, 3, "job", None)["TF_CONFIG"]) for index in range(3)]
    assert [config["task"] for config in told] == [{"type": "worker", "index": index} for index in range(3)]
    assert told[0]["cluster"] == told[1]["cluster"] == told[2]["cluster"]
    assert len(set(told[0]["cluster"]["worker"])) == 3


def test_the_resolver_of_tf_config_understands_it(monkeypatch):
    for name, value in worker_environment(1, 3, "job", None).items():
        monkeypatch.setenv(name, value)
    resolver = ringlet.cluster_resolver.TFConfigClusterResolver()
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    assert len(resolver.cluster_spec().as_dict()["worker"]) == 3


def test_a_thousand_workers_have_addresses_that_exist():
    cluster = json.loads(worker_environment(0, 1000, "job", None)["TF_CONFIG"])["cluster"]["worker"]
    assert all(int(address.rpartition(":")[2]) < 1 << 16 for address in cluster)


def test_replicas_are_told_only_where_somebody_has_asked_for_a_number():
    assert "RINGLET_NUM_DEVICES" not in worker_environment(0, 1, "job", None)
    assert worker_environment(0, 1, "job", 4)["RINGLET_NUM_DEVICES"] == "4"


def test_torch_finds_its_ranks_and_one_port_for_each_job():
    first, second = (worker_environment(index, 2, "job", None) for index in range(2))
    assert [each["RANK"] for each in (first, second)] == [each["LOCAL_RANK"] for each in (first, second)] == ["0", "1"]
    assert {each[name] for each in (first, second) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE")} == {"2"}
    assert first["MASTER_PORT"] == second["MASTER_PORT"]
    assert worker_environment(0, 2, "another", None)["MASTER_PORT"] != first["MASTER_PORT"]
