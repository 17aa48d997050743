"""SlurmClusterResolver: the tasks of a job step, in an environment that is passed in."""

from __future__ import annotations

import pytest

from ringlet.cluster import SlurmClusterResolver
from tests.cluster.contract import ResolverContract

STEP = {
    "SLURM_PROCID": "1",
    "SLURM_STEP_NUM_TASKS": "3",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_STEP_TASKS_PER_NODE": "2,1",
}


def step(**others):
    return {key: value for key, value in {**STEP, **others}.items() if value is not None}


class TestSlurmClusterResolver(ResolverContract):
    def make(self):
        return SlurmClusterResolver(environ=step(), gpus_per_node=0)


def test_hosts_and_jobs_are_sorted_so_that_all_tasks_agree():
    resolver = SlurmClusterResolver(
        {"worker": 2, "ps": 1}, 9000, 0, environ=step(SLURM_STEP_NODELIST="z,a", SLURM_PROCID="2")
    )
    assert resolver.cluster_spec().as_dict() == {"ps": ["a:9000"], "worker": ["z:9000", "z:9001"]}
    assert resolver.get_task_info() == ("worker", 1)


def test_the_task_is_known_once_the_cluster_was_asked_for():
    resolver = SlurmClusterResolver(environ=step(), gpus_per_node=0)
    assert (resolver.get_task_info(), resolver.master()) == ((None, None), "")
    resolver.cluster_spec()
    assert (resolver.get_task_info(), resolver.master()) == (("worker", 1), "grpc://n1:8889")


def test_a_cluster_without_gpus_is_a_cluster(tmp_path):
    environ = step(PATH=str(tmp_path))  # no nvidia-smi
    resolver = SlurmClusterResolver(environ=environ)
    assert resolver.cluster_spec().num_tasks("worker") == 3
    assert resolver.num_accelerators() == {"GPU": 0}
    assert "CUDA_VISIBLE_DEVICES" not in environ


def test_gpus_are_dealt_to_the_tasks_of_each_host():
    environ = step(CUDA_VISIBLE_DEVICES="0,1,2,3")
    resolver = SlurmClusterResolver(environ=environ)
    resolver.cluster_spec()
    assert resolver._gpu_allocation == ["0,1", "2,3", "0,1"]
    assert (environ["CUDA_VISIBLE_DEVICES"], resolver.num_accelerators()) == ("2,3", {"GPU": 2})


def test_gpus_stay_as_they_were_if_so_asked():
    environ = step(CUDA_VISIBLE_DEVICES="0,1")
    SlurmClusterResolver(auto_set_gpu=False, environ=environ).cluster_spec()
    assert environ["CUDA_VISIBLE_DEVICES"] == "0,1"


def nvidia_smi(folder, script):
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return step(PATH=str(folder))


def test_gpus_are_counted_by_nvidia_smi_where_nothing_else_says(tmp_path):
    environ = nvidia_smi(tmp_path, "echo 'GPU 0: one'; echo 'GPU 1: two'; echo end")
    assert SlurmClusterResolver(environ=environ).num_accelerators() == {"GPU": 1}


def test_a_program_that_cannot_count_gpus_is_an_error_that_says_what_to_give(tmp_path):
    with pytest.raises(
        RuntimeError, match=r"number of GPUs from nvidia-smi.*gpus_per_node=, or gpus_per_node=0 without GPUs"
    ):
        SlurmClusterResolver(environ=nvidia_smi(tmp_path, "exit 3"))


@pytest.mark.parametrize("name", sorted(STEP))
def test_a_variable_that_is_missing_is_named_with_those_that_are_there(name):
    others = ", ".join(sorted(set(STEP) - {name}))
    words = f"{name} not found in environment. Not running inside a SLURM step\\? SLURM_\\* present: {others}. Launch"
    with pytest.raises(RuntimeError, match=words):
        SlurmClusterResolver(environ=step(**{name: None}), gpus_per_node=0)


@pytest.mark.parametrize(
    ("others", "kwargs", "kind", "words"),
    [
        # variables, arguments, class of the error, words of it
        ({"SLURM_PROCID": "x"}, {}, ValueError, "SLURM_PROCID is not a number"),
        ({"SLURM_PROCID": "-1"}, {}, ValueError, "SLURM_PROCID is -1"),
        ({"SLURM_PROCID": "9"}, {}, RuntimeError, "SLURM_PROCID is 9, but there are 3 tasks"),
        ({"SLURM_STEP_NODELIST": ""}, {}, ValueError, "the job step has no hosts"),
        ({"SLURM_STEP_NODELIST": "n[1-"}, {}, ValueError, "Invalid hostlist"),
        ({}, {"jobs": {"worker": 4}}, RuntimeError, "Requested 4 tasks but only 3 were assigned. jobs= is"),
        ({}, {"gpus_per_node": 1, "gpus_per_task": 1}, RuntimeError, "Requested more GPUs per node than available. 2"),
    ],
)
def test_a_step_that_cannot_be_is_refused(others, kwargs, kind, words):
    with pytest.raises(kind, match=words):
        SlurmClusterResolver(environ=step(**others), **{"gpus_per_node": 0, **kwargs}).cluster_spec()


@pytest.mark.parametrize("tasks_per_node", [1, {"n1": 1, "n2": 1, "n0": 1}])
def test_tasks_of_hosts_can_be_given(tasks_per_node):
    environ = step(SLURM_STEP_TASKS_PER_NODE=None, SLURM_STEP_NODELIST="n[0-2]")
    resolver = SlurmClusterResolver(tasks_per_node=tasks_per_node, gpus_per_node=0, environ=environ)
    assert resolver.cluster_spec().job_tasks("worker") == ["n0:8888", "n1:8888", "n2:8888"]
