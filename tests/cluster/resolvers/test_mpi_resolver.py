"""MPIClusterResolver: the processes of MPI, in an environment that is passed in."""

from __future__ import annotations

import pytest

from ringlet.cluster.resolvers.mpi_resolver import MPIClusterResolver

OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}


@pytest.mark.parametrize(
    ("environ", "task", "count"),
    [
        (OPEN_MPI, ("worker", 2), 4),
        ({"PMI_RANK": "1", "PMI_SIZE": "3"}, ("worker", 1), 3),
        ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "3", "SLURM_JOB_ID": "7"}, ("worker", 1), 3),
        ({**OPEN_MPI, "TF_CONFIG": "{}"}, ("worker", 2), 4),
        ({**OPEN_MPI, "RANK": "0", "WORLD_SIZE": "2"}, ("worker", 2), 4),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}, (None, None), 0),
        ({"RANK": "0", "WORLD_SIZE": "2"}, (None, None), 0),
        ({}, (None, None), 0),
    ],
)  # fmt: skip
def test_the_workers_are_the_processes_of_mpi(environ, task, count):
    resolver = MPIClusterResolver(environ=environ)
    assert (resolver.task_type, resolver.task_id) == task
    assert sum(len(tasks) for tasks in resolver.cluster_spec().as_dict().values()) == count


def test_the_addresses_take_the_protocol_that_is_given():
    assert MPIClusterResolver("grpc", environ=OPEN_MPI).master("worker", 0).startswith("grpc://")
