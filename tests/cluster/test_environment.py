"""Which process of how many the environment describes: one order of variables, and what those suffice for."""

from __future__ import annotations

import logging

import pytest

from ringlet.cluster import environment
from ringlet.cluster.environment import (
    check_one_machine,
    default_resolver,
    hosts_placement,
    job_id_of,
    placement,
    warn_if_alone,
)
from ringlet.errors import ClusterConfigError

TORCH = {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}
SLURM = {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4", "SLURM_JOB_ID": "12", "SLURM_STEP_ID": "0"}


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    """The environment of the process, without any of the variables, and without warnings logged before."""
    for name in environment.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(environment, "_warned", set())
    return monkeypatch


@pytest.mark.parametrize(
    ("environ", "rank", "size", "local"),
    [
        # variables, rank, number of processes, (rank, number) on this machine
        ({}, 0, 1, (0, 1)),
        ({"RINGLET_RANK": "1", "RINGLET_NUM_RANKS": " 2 "}, 1, 2, (1, 2)),
        (TORCH, 1, 4, (1, 4)),
        (TORCH | {"LOCAL_WORLD_SIZE": "2"}, 1, 4, (1, 2)),
        (TORCH | {"RANK": "3"}, 3, 4, (1, 1)),
        (TORCH | {"MASTER_ADDR": "127.0.0.1"}, 1, 4, (1, 4)),
        (TORCH | {"MASTER_ADDR": "203.0.113.7"}, 1, 4, (1, 1)),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "3"}, 2, 3, (2, 3)),
        ({"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "1"}, 0, 2, (0, 1)),
        (SLURM, 1, 4, (1, 4)),
        (SLURM | {"SLURM_STEP_NUM_NODES": "2"}, 1, 4, (0, 1)),
    ],
)
def test_every_dialect_is_read(environ, rank, size, local):
    found = placement(environ)
    assert (found.rank, found.size, (found.local_rank, found.local_size), found.note) == (rank, size, local, "")


def test_the_first_variables_of_the_order_decide():
    everything = SLURM | {"PMI_RANK": "0", "PMI_SIZE": "5"} | TORCH | {"RINGLET_RANK": "0", "RINGLET_NUM_RANKS": "1"}
    assert placement(everything).source == "RINGLET_RANK=0 RINGLET_NUM_RANKS=1"
    assert placement(everything | {"TF_CONFIG": "{}"}).source == "TF_CONFIG"
    del everything["RINGLET_RANK"]
    assert placement(everything).source == "RANK=1 WORLD_SIZE=4"
    del everything["RANK"]
    assert placement(everything).source == "PMI_RANK=0 PMI_SIZE=5"


@pytest.mark.parametrize(
    ("environ", "note"),
    [
        # variables that do not suffice, how they are named
        ({"RINGLET_RANK": "1"}, "RINGLET_RANK=1 without RINGLET_NUM_RANKS"),
        ({"RINGLET_NUM_RANKS": "2"}, "RINGLET_NUM_RANKS=2 without RINGLET_RANK"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2 WORLD_SIZE=2 (expected RANK from 0 to WORLD_SIZE - 1)"),
        ({"RANK": "0", "WORLD_SIZE": "two"}, "RANK=0 WORLD_SIZE=two (expected RANK from 0 to WORLD_SIZE - 1)"),
        ({"RANK": "0", "WORLD_SIZE": "0"}, "RANK=0 WORLD_SIZE=0 (expected RANK from 0 to WORLD_SIZE - 1)"),
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE=2 without RANK"),
        ({"PMIX_RANK": "1"}, "PMIX_RANK=1 without a number of processes"),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, "SLURM_PROCID=0 SLURM_NTASKS=2 outside of an srun step"),
        # and variables that say nothing of others
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_JOB_ID": "12"}, ""),
        ({"SLURM_NTASKS": "4"}, ""),
        ({"PMIX_RANK": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, ""),
        ({"RANK": "major"}, ""),
        ({"RANK": "16"}, ""),
        ({"RANK": "0", "WORLD_SIZE": "1"}, ""),
    ],
)
def test_variables_that_do_not_suffice_are_named_once(variables, caplog, environ, note):
    assert (placement(environ).note, placement(environ).size) == (note, 1)
    for name, value in environ.items():
        variables.setenv(name, value)
    with caplog.at_level(logging.WARNING):
        warn_if_alone("ringlet.size()")
        warn_if_alone("ringlet.size()")
    assert len(caplog.messages) == bool(note)
    for message in caplog.messages:
        assert message.startswith(f"found {note}: ringlet.size() runs as a single process.")
        assert message.endswith("set RINGLET_RANK=0 and RINGLET_NUM_RANKS=1")


@pytest.mark.parametrize(
    ("environ", "hidden"),
    [
        ({"RANK": "0", "WORLD_SIZE": "1", "PMI_RANK": "2", "PMI_SIZE": "4"}, "PMI_RANK=2 PMI_SIZE=4"),
        (SLURM | {"PMI_RANK": "0", "PMI_SIZE": "1"}, "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4"),
        (SLURM | {"RINGLET_RANK": "0", "RINGLET_NUM_RANKS": "1"}, ""),
    ],
)
def test_a_job_that_other_variables_hide_is_named(variables, caplog, environ, hidden):
    for name, value in environ.items():
        variables.setenv(name, value)
    with caplog.at_level(logging.WARNING):
        assert default_resolver().cluster_spec().jobs == []
    assert len(caplog.messages) == bool(hidden)
    assert all(f", which hides {hidden}: MultiWorkerMirroredStrategy" in message for message in caplog.messages)


def test_a_number_beyond_the_number_of_processes_is_refused():
    with pytest.raises(ClusterConfigError, match=r"RINGLET_RANK=4 RINGLET_NUM_RANKS=4 .* Number the processes from 0"):
        placement({"RINGLET_RANK": "4", "RINGLET_NUM_RANKS": "4"})


def test_a_strategy_is_given_the_workers_of_the_environment(variables):
    assert not default_resolver().cluster_spec()
    variables.setenv("PMI_RANK", "1")
    variables.setenv("PMI_SIZE", "2")
    resolver = default_resolver()
    assert (resolver.task_type, resolver.task_id) == ("worker", 1)
    assert resolver.cluster_spec().num_tasks("worker") == 2
    variables.setenv("MPI_LOCALNRANKS", "1")  # MPI connects hosts
    assert default_resolver().cluster_spec().num_tasks("worker") == 2


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, 2),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, None),
        ({"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "1"}, 1),
        ({"RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1"}, None),
        ({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1"}, None),
        ({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1", "PMIX_RANK": "3"}, 3),
        ({}, None),
    ],
)
def test_only_a_job_of_mpi_spans_hosts(environ, expected):
    place = hosts_placement(environ)
    assert (place and place.rank) == expected
    assert hosts_placement({**environ, "TF_CONFIG": "{}"}) == place


def test_processes_of_torchrun_on_several_machines_are_refused(variables):
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1"}.items():
        variables.setenv(name, value)
    with pytest.raises(ClusterConfigError, match=r"RANK=1 WORLD_SIZE=2 describes .* machines.*ringlet\[mpi\].*mpiexec"):
        default_resolver()


def test_a_cluster_of_several_machines_is_refused_with_the_way_out():
    spec = '{"cluster": {"worker": ["localhost:1", "203.0.113.7:1"]}, "task": {"type": "worker", "index": 0}}'
    with pytest.raises(ClusterConfigError, match=r"TF_CONFIG describes processes on several machines.*unset it"):
        check_one_machine(placement({"TF_CONFIG": spec}))


def test_a_task_without_a_cluster_is_refused():
    with pytest.raises(ClusterConfigError, match=r"a task is given without its cluster. TF_CONFIG, at \$.cluster"):
        placement({"TF_CONFIG": '{"task": {"type": "worker", "index": 0}}'})
    assert placement({"TF_CONFIG": '{"cluster": {}, "task": {"type": "worker", "index": 0}}'}).size == 1


def test_concurrent_jobs_are_kept_apart_by_what_their_launcher_gives():
    assert job_id_of(SLURM) == "SLURM_PROCID 12 0"
    assert job_id_of(SLURM | {"RINGLET_JOB_ID": "mine"}) == "mine"
    assert job_id_of(SLURM | {"TF_CONFIG": "{"}) == ""
    assert job_id_of(SLURM | {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}) == "", (
        "steps of one task each may meet"
    )
