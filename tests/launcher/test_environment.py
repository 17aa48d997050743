"""What each worker is told."""

from __future__ import annotations

import json

import pytest

import ringlet
from ringlet.launcher.environment import blas_threads, new_job_id, worker_environment

ALL = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"}


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


def test_no_two_jobs_have_one_name():
    assert len({new_job_id() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("cores", "ranks", "threads"),
    [
        # cores, ranks, threads of each
        (8, 1, "8"),
        (8, 3, "2"),
        (2, 4, "1"),
    ],
)
def test_blas_threads_are_the_cores_over_the_ranks(cores, ranks, threads):
    assert blas_threads({}, cores, ranks) == dict.fromkeys(ALL, threads)


def test_what_the_user_has_set_stays():
    assert blas_threads({"MKL_NUM_THREADS": "7"}, 4, 2).keys() == ALL - {"MKL_NUM_THREADS"}


def test_openmps_number_holds_for_all():
    assert blas_threads({"OMP_NUM_THREADS": "3"}, 4, 2) == {}


def test_ringlets_own_number_is_used_and_its_zero_leaves_blas_alone():
    assert blas_threads({"RINGLET_BLAS_THREADS": "3"}, 4, 4) == dict.fromkeys(ALL, "3")
    assert blas_threads({"RINGLET_BLAS_THREADS": "0"}, 4, 4) == {}
