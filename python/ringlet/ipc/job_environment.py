"""Job environment: variables that give a job's processes the job's id and the number of BLAS threads."""

from __future__ import annotations

import os
from collections.abc import Mapping

# OpenBLAS, MKL, BLIS, Accelerate and OpenMP libraries read these variables when they are loaded. The BLAS libraries
# default to OMP_NUM_THREADS.
_OPENMP = "OMP_NUM_THREADS"
_BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def new_job_id() -> str:
    """Return a new random ``RINGLET_JOB_ID``."""
    return os.urandom(8).hex()


def blas_threads(environment: Mapping[str, str], cores: int, ranks: int) -> dict[str, str]:
    """Return the variables that limit each rank's BLAS threads to its share of the cores, unless they are already set.

    ``RINGLET_BLAS_THREADS`` in the environment overrides the number of threads; with 0, or if ``OMP_NUM_THREADS`` is
    set, no variable is returned.
    """
    asked = environment.get("RINGLET_BLAS_THREADS", "").strip()
    # OMP_NUM_THREADS, if set, already applies to all libraries. The worker reports an invalid RINGLET_BLAS_THREADS.
    if environment.get(_OPENMP) or (asked and (not asked.isdecimal() or int(asked) == 0)):
        return {}
    threads = asked or str(max(1, cores // ranks))
    return {name: threads for name in (_OPENMP, *_BLAS_VARIABLES) if not environment.get(name)}
