"""Job environment: the environment variables of a job's processes, with its id and the number of BLAS threads."""

from __future__ import annotations

import os
from collections.abc import Mapping

__all__ = ["blas_threads", "new_job_id"]

# OpenBLAS, MKL, BLIS, Accelerate and OpenMP libraries read these variables when they are loaded. The BLAS libraries
# default to OMP_NUM_THREADS.
_OPENMP = "OMP_NUM_THREADS"
_BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def new_job_id() -> str:
    """Return a new random ``RINGLET_JOB_ID``.

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
    """Return the variables that divide the cores among the BLAS libraries of all ranks.

    Parameters
    ----------
    environment : mapping of str to str
        Variables set here are not overridden. ``RINGLET_BLAS_THREADS`` is the number of threads, 0 to set none.
    cores : int
        Cores shared by the ranks.
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
    # OpenMP's variable sets all. The worker itself reports an invalid number.
    if environment.get(_OPENMP) or (asked and (not asked.isdecimal() or int(asked) == 0)):
        return {}
    threads = asked or str(max(1, cores // ranks))
    return {name: threads for name in (_OPENMP, *_BLAS_VARIABLES) if not environment.get(name)}
