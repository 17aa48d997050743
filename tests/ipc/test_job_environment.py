"""What the processes of a job find in their environment."""

from __future__ import annotations

import pytest

from ringlet.ipc.job_environment import blas_threads, new_job_id

ALL = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"}


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
