"""The role of this process in its job: its index, and whether it is the chief."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringlet import context
from ringlet.strategy.multi_worker.ambient_worker_group import current_workers

if TYPE_CHECKING:
    from ringlet.cluster.cluster_spec import ClusterSpec
    from ringlet.cluster.environment import Placement


@dataclass(frozen=True)
class ProcessRole:
    """The role of a process: its `index` among the `count` processes of its task type, and whether it is the chief.

    `task` is the task type; a chief has the type ``"worker"``. `job` identifies the cluster of a ``TF_CONFIG``; it is
    empty without one, for other task types, and for the workers of a strategy. `host_indices` are the processes known
    to be on this machine, and `local_rank` is the index of this process among the processes of the job on this machine.
    """

    index: int = 0
    count: int = 1
    is_chief: bool = True
    task: str = "worker"
    job: str = ""
    host_indices: tuple[int, ...] = (0,)
    local_rank: int = 0

    @property
    def name(self) -> str:
        """Name of the process in log records and in the launcher's output: ``w2`` is worker 2."""
        return f"{'w' if self.task == 'worker' else self.task}{self.index}"


def is_chief() -> bool:
    """Return whether this process is the chief and, inside ``strategy.run``, this replica is the first.

    Returns
    -------
    bool
        Inside ``strategy.run``, whether this is replica 0. Elsewhere, whether this process is the chief of the current
        strategy or of the last strategy created here; without a strategy, whether this process is the first of the
        environment (``ringlet run``, ``TF_CONFIG``, ``RINGLET_RANK``, torchrun, mpirun or srun). True for a single
        process.

    Raises
    ------
    ClusterConfigError
        If ``TF_CONFIG`` cannot be parsed, or the rank is not below the number of processes.

    Notes
    -----
    The chief is the task of type ``chief``. In a cluster without such a task, worker 0 is the chief. As in TensorFlow,
    an evaluator is its own chief.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.is_chief()
    True
    >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> print(strategy.run(ringlet.is_chief))
    PerReplica:{
      0: True,
      1: False
    }
    """
    return not local_replica() and process_role().is_chief


def rank() -> int:
    """Return the index of this process among the processes of its job, from 0.

    Returns
    -------
    int
        The index in the current strategy or in the last strategy created here; without a strategy, in the environment:
        ``ringlet run``, ``TF_CONFIG``, ``RINGLET_RANK``, torchrun, mpirun or srun. 0 for a single process. In a
        replica, the index of its process.

    Raises
    ------
    ClusterConfigError
        If ``TF_CONFIG`` cannot be parsed, or the rank is not below the number of processes.

    See Also
    --------
    size, local_rank, is_chief

    Examples
    --------
    >>> import ringlet
    >>> ringlet.rank(), ringlet.size(), ringlet.local_rank()
    (0, 1, 0)
    """
    return _role_for_users("ringlet.rank()").index


def size() -> int:
    """Return the number of processes of this job; 1 for a single process.

    Returns
    -------
    int
        From the same source as :func:`rank`.

    Raises
    ------
    ClusterConfigError
        If ``TF_CONFIG`` cannot be parsed, or the rank is not below the number of processes.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.size()
    1
    """
    return _role_for_users("ringlet.size()").count


def local_rank() -> int:
    """Return the index of this process among the job's processes on this machine, from 0.

    Returns
    -------
    int
        From the same source as :func:`rank`.

    Raises
    ------
    ClusterConfigError
        If ``TF_CONFIG`` cannot be parsed, or the rank is not below the number of processes.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.local_rank()
    0
    """
    return _role_for_users("ringlet.local_rank()").local_rank


def _role_for_users(name: str) -> ProcessRole:
    role = process_role()
    if role.count == 1 and current_workers() is None:
        from ringlet.cluster.environment import warn_if_alone

        warn_if_alone(name)
    return role


def local_replica() -> int | None:
    """Return the index of the current replica among the replicas of this process; None outside of replicas."""
    mode = context.current()
    return None if mode is None else mode.local_replica_id


def process_role() -> ProcessRole:
    """Return the role of this process, from the current strategy or else the environment."""
    workers = current_workers()
    if workers is None:
        return role_in_environment(os.environ)
    from ringlet.cluster.environment import hosts_placement

    index, begin, end = workers.worker_index, 0, workers.num_workers
    if (place := hosts_placement(os.environ)) is not None and place.size == workers.num_workers:
        begin = index - place.local_rank  # the workers of a host have consecutive indices
        end = begin + place.local_size
    here = tuple(range(begin, end))
    return ProcessRole(index, workers.num_workers, workers.is_chief, host_indices=here, local_rank=index - begin)


def role_in_environment(environ: Mapping[str, str]) -> ProcessRole:
    """Return the role that environment variables define."""
    from ringlet.cluster.environment import DECIDING, placement

    if not any(name in environ for name in DECIDING):  # fast path: a role is computed for every log record
        return ProcessRole()
    return _role_of(placement(environ))


@functools.lru_cache(maxsize=8)
def _role_of(place: Placement) -> ProcessRole:
    if place.config is not None:
        return role_of_task(place.config.cluster_spec, place.config.task_type, place.config.task_id)
    # The processes on this machine are known only if all processes are on it.
    here = tuple(range(place.size)) if place.local_size == place.size else (place.rank,)
    return ProcessRole(place.rank, place.size, place.rank == 0, host_indices=here, local_rank=place.local_rank)


def role_of_task(spec: ClusterSpec, task_type: str | None, task_id: int | None) -> ProcessRole:
    """Return the role of a task; without a cluster or a task, that of a process that runs alone."""
    if not spec.jobs or task_type is None or task_id is None:
        return ProcessRole()
    from ringlet.cluster.cluster_queries import is_chief as is_chief_task
    from ringlet.cluster.cluster_queries import worker_tasks
    from ringlet.cluster.environment import canonical_addresses
    from ringlet.cluster.local_addresses import foreign_addresses

    if task_type not in ("chief", "worker"):
        count = spec.num_tasks(task_type) if task_type in spec.jobs else task_id + 1
        return ProcessRole(task_id, count, is_chief_task(spec, task_type, task_id), task_type, host_indices=(task_id,))
    is_first = is_chief_task(spec, task_type, task_id)  # raises an error if the task does not exist
    tasks = worker_tasks(spec)
    addresses = [address for _, _, address in tasks]
    index = [(job, number) for job, number, _ in tasks].index((task_type, task_id))
    foreign = set(foreign_addresses(addresses, addresses[index]))
    local = tuple([i for i, address in enumerate(addresses) if address not in foreign])
    job = str([(name, number, canonical_addresses([address])) for name, number, address in tasks])
    return ProcessRole(index, len(tasks), is_first, job=job, host_indices=local, local_rank=local.index(index))
