"""What every process of a job finds in its environment: the name of the job, and how many threads its BLAS may have."""

from __future__ import annotations

import os
from collections.abc import Mapping

__all__ = ["blas_threads", "new_job_id"]

# What OpenBLAS, MKL, BLIS, Accelerate and everything on OpenMP read when they are loaded. The first one holds for the
# others where they are not set.
_OPENMP = "OMP_NUM_THREADS"
_BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def new_job_id() -> str:
    """Make a ``RINGLET_JOB_ID`` that no other job has.

    Returns
    -------
    str

    Examples
    --------
    >>> new_job_id() == new_job_id()
    False
    """
    return os.urandom(8).hex()


def blas_threads(environment: Mapping[str, str], cores: int, ranks: int) -> dict[str, str]:
    """Give the variables that make the BLAS libraries of all ranks together use each core once.

    Parameters
    ----------
    environment : mapping of str to str
        What the user has set: that stays. ``RINGLET_BLAS_THREADS`` is the number of threads, 0 to leave BLAS alone.
    cores : int
        Cores that the ranks share.
    ranks : int
        Replicas of all workers together.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> blas_threads({"MKL_NUM_THREADS": "3"}, cores=8, ranks=4)
    {'OMP_NUM_THREADS': '2', 'OPENBLAS_NUM_THREADS': '2', 'BLIS_NUM_THREADS': '2', 'VECLIB_MAXIMUM_THREADS': '2'}
    >>> blas_threads({"OMP_NUM_THREADS": "8"}, cores=8, ranks=4)
    {}
    """
    asked = environment.get("RINGLET_BLAS_THREADS", "").strip()
    # Whoever has set OpenMP's means all of them. What is no number, the worker says itself.
    if environment.get(_OPENMP) or (asked and (not asked.isdecimal() or int(asked) == 0)):
        return {}
    threads = asked or str(max(1, cores // ranks))
    return {name: threads for name in (_OPENMP, *_BLAS_VARIABLES) if not environment.get(name)}
