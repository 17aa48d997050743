"""The environment: the rank of this process and the number of processes, from variables of launchers and schedulers.

Strategies, process groups, `ringlet.rank` and the helpers of rank zero read the environment through this module. The
first row of this table whose variables are set applies.

    TF_CONFIG                                            `ringlet run`, TensorFlow's tools
    RINGLET_RANK, RINGLET_NUM_RANKS                      set by hand
    RANK, WORLD_SIZE                                     torchrun
    OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE           mpirun of Open MPI
    PMI_RANK, PMI_SIZE                                   mpiexec of MPICH and of Intel MPI, srun --mpi=pmi2
    SLURM_PROCID, SLURM_STEP_NUM_TASKS                   srun
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ringlet.cluster.cluster_queries import worker_tasks
from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.config_errors import Fault
from ringlet.cluster.local_addresses import canonical_address, foreign_addresses
from ringlet.cluster.resolvers.base_resolver import ClusterResolver
from ringlet.cluster.resolvers.simple_resolver import SimpleClusterResolver
from ringlet.cluster.resolvers.tf_config_resolver import TFConfigClusterResolver
from ringlet.cluster.tf_config_parser import TFConfig
from ringlet.errors import ClusterConfigError

_log = logging.getLogger(__name__)

TF_CONFIG, JOB_ID = "TF_CONFIG", "RINGLET_JOB_ID"
_TO_RUN_ALONE = "to run one process alone, set RINGLET_RANK=0 and RINGLET_NUM_RANKS=1"

# A strategy needs an address for each worker. No process listens on the ports, because the rendezvous uses a name
# derived from cluster and job; so two jobs with the same ports do not collide.
_FIRST_PORT = 20000


class _Dialect(NamedTuple):
    """The variables of one launcher; `job` names variables whose values differ between concurrent jobs."""

    rank: str
    size: str
    local_rank: str = ""
    local_size: str = ""
    job: tuple[str, ...] = ()


_DIALECTS = (
    _Dialect("RINGLET_RANK", "RINGLET_NUM_RANKS"),
    _Dialect("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", ("TORCHELASTIC_RUN_ID", "MASTER_PORT")),
    _Dialect(
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        ("PMIX_NAMESPACE",),
    ),
    _Dialect("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ("PMI_JOBID",)),
    _Dialect("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
    _Dialect("PMIX_RANK", ""),  # PMIx has no variable for the size: processes query its server
)
_SERVERS = {"PMIX_RANK", "PMI_FD"}
_MASTER, _STEP_NODES, _NUM_TASKS = "MASTER_ADDR", "SLURM_STEP_NUM_NODES", "SLURM_NTASKS"
DECIDING = (
    TF_CONFIG,
    *(dialect.size for dialect in _DIALECTS if dialect.size),
)  # if none of these is set, the process is not part of a job
VARIABLES = (
    TF_CONFIG,
    JOB_ID,
    *dict.fromkeys(name for dialect in _DIALECTS for name in (*dialect[:4], *dialect.job) if name),
    _MASTER,
    _STEP_NODES,
    _NUM_TASKS,
)


class Placement(NamedTuple):
    """The rank of a process and the number of processes.

    `source` names the variables that were used, with their values; it is empty if none were used.
    `local_rank` is the rank among the `local_size` processes on this machine. `note` describes variables that imply a
    job but give no valid rank, or that override the variables of another launcher. `is_impossible` is true if no
    process can have this rank. If the source is ``TF_CONFIG``, only `source`, `job_id` and `config` are set.
    """

    source: str = ""
    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    job_id: str = ""
    note: str = ""
    config: TFConfig | None = None
    is_impossible: bool = False


def placement(environ: Mapping[str, str] | None = None) -> Placement:
    """Return the placement that an environment describes; raise ClusterConfigError if no process can have its rank."""
    place = read_placement(environ)
    if place.is_impossible:
        raise ClusterConfigError(
            f"{place.note} does not identify a process. Number the processes from 0, or start them with `ringlet run "
            f"-n N script.py`; {_TO_RUN_ALONE}",
            "$",
        )
    return place


def read_placement(environ: Mapping[str, str] | None = None) -> Placement:
    """Return the placement that an environment describes; set `is_impossible` if no process can have its rank."""
    environ = os.environ if environ is None else environ
    if TF_CONFIG in environ:
        return _configured(environ[TF_CONFIG], environ.get(JOB_ID, ""))
    return _placement(tuple(environ.get(name) for name in VARIABLES))


@functools.lru_cache(maxsize=8)
def _configured(text: str, job_id: str) -> Placement:
    config = TFConfig.of(text)
    if not config.cluster_spec and not config.has_cluster and config.task_type is not None:
        raise config.error_of(Fault("a task is given without its cluster", "the addresses of all tasks", ["cluster"]))
    return Placement(TF_CONFIG, job_id=job_id, config=config)


@functools.lru_cache(maxsize=8)
def _placement(values: tuple[str | None, ...]) -> Placement:
    environ = {name: value for name, value in zip(VARIABLES, values, strict=True) if value is not None}
    job_id = environ.get(JOB_ID, "")
    found = [_read(dialect, environ) for dialect in _DIALECTS]
    places = [place for place in found if isinstance(place, Placement)]
    if not places:
        return Placement(job_id=job_id, note=next((note for note in found if isinstance(note, str) and note), ""))
    place = places[0]
    if place.is_impossible:
        return place._replace(job_id=job_id)
    hidden = next((other.source for other in places if other.size > 1), "")
    # RINGLET_NUM_RANKS=1 makes a process run alone: the variables of other launchers may come from a container image or
    # an outer job.
    is_hiding = place.size == 1 and hidden and place is not found[0]
    note = f"{place.source}, which hides {hidden}" if is_hiding else ""
    return place._replace(job_id=job_id or place.job_id, note=note)


def _read(dialect: _Dialect, environ: Mapping[str, str]) -> Placement | str:
    """Return the placement that a launcher's variables describe, impossible if their numbers are invalid.

    If they do not suffice, return the reason; if they are not set or imply no job, return an empty string.
    """
    seen = " ".join(f"{name}={environ[name]}" for name in dialect[:2] if name in environ)
    if dialect.rank == "SLURM_PROCID" and dialect.size not in environ:
        # Slurm sets a rank for a batch script, although the script is not part of a step.
        num_tasks = _number(environ, _NUM_TASKS) or 1
        return f"{seen} {_NUM_TASKS}={num_tasks} outside of an srun step" if seen and num_tasks > 1 else ""
    rank, size = _number(environ, dialect.rank), _number(environ, dialect.size)
    if rank is None or size is None or rank >= size:
        if missing := [name for name in dialect[:2] if name not in environ]:
            # RANK alone is ignored, because other programs also use it.
            is_meant = (size or 0) > 1 or (rank is not None and dialect.rank != "RANK") or dialect is _DIALECTS[0]
            return f"{seen} without {missing[0] or 'a number of processes'}" if seen and is_meant else ""
        numbers = f"{dialect.rank} from 0 to {size - 1}" if size else f"{dialect.size}, the number of processes, from 1"
        return Placement(note=f"{seen} (expected {numbers})", is_impossible=True)
    local_rank = _number(environ, dialect.local_rank)
    local_size = _number(environ, dialect.local_size)
    if local_size is None:
        local_size = 1 if _has_other_machines(dialect, environ, rank, local_rank) else size
    job = " ".join(environ[name] for name in dialect.job if name in environ) if size > 1 else ""
    local_rank = rank % max(local_size, 1) if local_rank is None else local_rank
    return Placement(seen, rank, size, local_rank, local_size, job and f"{dialect.rank} {job}")


def _has_other_machines(dialect: _Dialect, environ: Mapping[str, str], rank: int, local_rank: int | None) -> bool:
    """Return whether variables other than the local size show that the job has other machines."""
    if local_rank is not None and local_rank != rank:
        return True
    if dialect.rank == "RANK" and foreign_addresses([environ.get(_MASTER, "localhost")], own="localhost"):
        return True
    return dialect.rank in ("PMI_RANK", "SLURM_PROCID") and environ.get(_STEP_NODES, "1") != "1"


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "").strip()
    return int(text) if text.isdecimal() else None


def mpi_placement(environ: Mapping[str, str]) -> Placement | None:
    """Return the placement of a process that mpiexec or srun started, else None; other variables are ignored."""
    found = (_read(dialect, environ) for dialect in _DIALECTS[2:5])
    return next((place for place in found if isinstance(place, Placement) and not place.is_impossible), None)


def hosts_placement(environ: Mapping[str, str]) -> Placement | None:
    """Return the placement of a process of an MPI job on several hosts; None for other processes."""
    place = mpi_placement(environ)
    # A Slurm step is an MPI job only if srun provides a PMI server, as with --mpi=pmix.
    lacks_server = place is not None and place.source.startswith("SLURM_") and not _SERVERS & environ.keys()
    return None if place is None or lacks_server or place.local_size == place.size else place


def canonical_addresses(addresses: Iterable[str]) -> list[str]:
    """Return addresses in a form that is equal on all workers; unchanged in an MPI job on several hosts."""
    spelling = str if hosts_placement(os.environ) else canonical_address
    return [spelling(address) for address in addresses]


def job_id_of(environ: Mapping[str, str]) -> str:
    """Return the id that distinguishes concurrent jobs: ``RINGLET_JOB_ID``, else the launcher's; empty if unknown."""
    return environ.get(JOB_ID, "") or ("" if TF_CONFIG in environ else read_placement(environ).job_id)


def default_resolver() -> ClusterResolver:
    """Return the resolver of the environment's cluster, for strategies created without a resolver."""
    place = placement()
    if place.config is not None or not place.source or place.note:
        warn_if_alone("MultiWorkerMirroredStrategy")
    if place.config is not None or not place.source:
        return TFConfigClusterResolver()
    check_one_machine(place)
    spec = local_workers(place.size) if place.size > 1 else ClusterSpec({})
    return SimpleClusterResolver(spec, task_type="worker", task_id=place.rank, rpc_layer="grpc")


def local_workers(count: int) -> ClusterSpec:
    """Return a cluster of workers on this machine."""
    return ClusterSpec({"worker": [f"localhost:{_FIRST_PORT + worker}" for worker in range(count)]})


def check_one_machine(place: Placement) -> None:
    """Raise an error if a job has processes on other machines, unless they were started as one MPI job."""
    has_others, alone = place.local_size < place.size, _TO_RUN_ALONE
    if place.config is not None:
        addresses = [str(address) for _, _, address in worker_tasks(place.config.cluster_spec)]
        has_others, alone = (
            bool(foreign_addresses(addresses, own="localhost")),
            ("to run one process alone, unset TF_CONFIG"),
        )
    if has_others and hosts_placement(os.environ) is None:
        raise ClusterConfigError(
            f"{place.source} describes processes on several machines, but they were not started as one MPI job: "
            "run `pip install 'ringlet[mpi]'` on each machine, and start all processes with `ringlet run --hosts "
            "a:4,b:4 script.py`, mpiexec or srun --mpi=pmix. On one machine, start them with `ringlet run -n N "
            f"script.py`; {alone}",
            "$",
        )


_warned: set[str] = set()


def warn_if_alone(what: str, remedy: str = "") -> None:
    """Log once that `what` runs as one process although the environment suggests several."""
    place = read_placement()
    others = place.note or (place.source if place.size > 1 else "")
    if others and others not in _warned:
        _warned.add(others)
        remedy = remedy or "To run several processes, use `ringlet run -n N script.py`, mpirun, torchrun or srun"
        _log.warning("found %s: %s runs as a single process. %s; %s", others, what, remedy, _TO_RUN_ALONE)
