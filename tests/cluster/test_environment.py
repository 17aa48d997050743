"""Which process of how many the environment describes: one order of variables, and what those suffice for."""

from __future__ import annotations

import logging
import re

import pytest

import ringlet
from ringlet.cluster import environment
from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.environment import (
    check_one_machine,
    default_resolver,
    hosts_placement,
    job_id_of,
    placement,
    warn_if_alone,
)
from ringlet.cluster.resolvers.simple_resolver import SimpleClusterResolver
from ringlet.collectives import init_process_group
from ringlet.errors import ClusterConfigError
from ringlet.strategy.multi_worker.multi_worker_strategy import MultiWorkerMirroredStrategy

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


def test_the_first_namesof_the_order_decide():
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
def test_namesthat_do_not_suffice_are_named_once(variables, caplog, environ, note):
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
def test_a_job_that_other_nameshide_is_named(variables, caplog, environ, hidden):
    for name, value in environ.items():
        variables.setenv(name, value)
    with caplog.at_level(logging.WARNING):
        assert default_resolver().cluster_spec().jobs == []
    assert len(caplog.messages) == bool(hidden)
    assert all(f", which hides {hidden}: MultiWorkerMirroredStrategy" in message for message in caplog.messages)


@pytest.mark.parametrize(
    ("names", "values", "expected"),
    [
        # names of rank and size, their values, what is expected
        ("RINGLET_RANK RINGLET_NUM_RANKS", "4 4", "RINGLET_RANK from 0 to 3"),
        ("RANK WORLD_SIZE", "5 2", "RANK from 0 to 1"),
        ("RANK WORLD_SIZE", "1 1", "RANK from 0 to 0"),
        ("RANK WORLD_SIZE", "-1 2", "RANK from 0 to 1"),
        ("RANK WORLD_SIZE", "0 two", "WORLD_SIZE, the number of processes, from 1"),
        ("RANK WORLD_SIZE", "0 0", "WORLD_SIZE, the number of processes, from 1"),
        ("OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE", "2 2", "OMPI_COMM_WORLD_RANK from 0 to 1"),
        ("PMI_RANK PMI_SIZE", "3 2", "PMI_RANK from 0 to 1"),
        ("SLURM_PROCID SLURM_STEP_NUM_TASKS", "4 2", "SLURM_PROCID from 0 to 1"),
    ],
)
def test_an_impossible_rank_is_refused_in_every_dialect(variables, names, values, expected):
    environ = dict(zip(names.split(), values.split(), strict=True))
    for name, value in environ.items():
        variables.setenv(name, value)
    seen = " ".join(f"{name}={value}" for name, value in environ.items())
    message = re.escape(f"{seen} (expected {expected}) does not identify a process. Number the processes from 0")
    for entry_point in (MultiWorkerMirroredStrategy, init_process_group, ringlet.rank):
        with pytest.raises(ClusterConfigError, match=message + ".* set RINGLET_RANK=0 and RINGLET_NUM_RANKS=1"):
            entry_point()


def test_an_impossible_rank_does_not_matter_where_another_source_applies(variables):
    impossible = {"RANK": "5", "WORLD_SIZE": "2"}
    for name, value in impossible.items():
        variables.setenv(name, value)
    assert placement(impossible | {"RINGLET_RANK": "0", "RINGLET_NUM_RANKS": "2"}).size == 2
    assert placement(impossible | {"TF_CONFIG": "{}"}).note == ""
    with init_process_group(rank=0, num_ranks=1) as member:
        assert member.num_ranks == 1
    assert job_id_of(impossible) == ""
    assert MultiWorkerMirroredStrategy(SimpleClusterResolver(ClusterSpec({}))).num_replicas_in_sync == 1


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
    with pytest.raises(ClusterConfigError, match=r"TF_CONFIG describes processes on several machines.*unset TF_CONFIG"):
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
