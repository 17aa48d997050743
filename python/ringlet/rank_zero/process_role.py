"""Which process of the job this is, and which of its replicas is current."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringlet import context
from ringlet.strategy.multi_worker.ambient_worker_group import current_workers

__all__ = ["Standing", "is_chief", "local_replica", "of_task", "standing", "standing_in"]

if TYPE_CHECKING:
    from ringlet.cluster.cluster_spec import ClusterSpec

# Of the environment, what a standing follows from.
_VARIABLES = ("TF_CONFIG", "RINGLET_RANK", "RINGLET_NUM_RANKS")


@dataclass(frozen=True)
class Standing:
    """The place of a process among those of its job.

    Attributes
    ----------
    index : int
        Which of the `count` processes that do the same this is; the chief is the first.
    count : int
        How many there are.
    is_chief : bool
        Whether it is the one that speaks for all.
    task : str
        What the cluster calls it, such as ``"worker"``; workers and the chief are all called so.
    job : str
        What tells the job from others, for processes that want to find each other; the workers of a strategy tell that
        themselves.
    neighbours : tuple of int
        The indices of those that are on the same machine, this one among them.
    """

    index: int = 0
    count: int = 1
    is_chief: bool = True
    task: str = "worker"
    job: str = ""
    neighbours: tuple[int, ...] = (0,)

    @property
    def name(self) -> str:
        """How the process is called in records, as the launcher calls it before lines: ``w2`` is worker 2.

        Examples
        --------
        >>> Standing(2, 4).name, Standing(0, 1, task="evaluator").name
        ('w2', 'evaluator0')
        """
        return f"{'w' if self.task == 'worker' else self.task}{self.index}"


def is_chief() -> bool:
    """Tell whether this is the one of all processes, and of all replicas, that speaks for all.

    Returns
    -------
    bool
        Inside of ``strategy.run``: whether this is replica 0 of all. Elsewhere: whether this process is the chief of
        the current strategy, or of the one that this process has made; without any, of the cluster in ``TF_CONFIG``, or
        whether its ``RINGLET_RANK`` is 0. True for a program that runs by itself.

    Raises
    ------
    ClusterConfigError
        If ``TF_CONFIG`` cannot be read.

    Notes
    -----
    The chief is the task of type ``chief``, or the first worker where there is none. As in TensorFlow, an evaluator is
    its own chief.

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
    return not local_replica() and standing().is_chief


def local_replica() -> int | None:
    """Give which replica of this process is current; None outside of replicas.

    Examples
    --------
    >>> local_replica() is None
    True
    """
    mode = context.current()
    return None if mode is None else mode.local_replica_id


def standing() -> Standing:
    """Give the place of this process.

    Raises
    ------
    ClusterConfigError
        If ``TF_CONFIG`` cannot be read, and no strategy tells.

    Examples
    --------
    >>> standing().count
    1
    """
    workers = current_workers()
    if workers is None:
        return standing_in({name: os.environ[name] for name in _VARIABLES if name in os.environ})
    everyone = tuple(range(workers.num_workers))  # a strategy over several processes is on one machine
    return Standing(workers.worker_index, workers.num_workers, workers.is_chief, neighbours=everyone)


def standing_in(environ: Mapping[str, str]) -> Standing:
    """Give the place of a process in an environment.

    Examples
    --------
    >>> config = '{"cluster": {"worker": ["a:1", "203.0.113.7:1", "a:2"]}, "task": {"type": "worker", "index": 2}}'
    >>> place = standing_in({"TF_CONFIG": config})
    >>> place.index, place.count, place.is_chief, place.neighbours
    (2, 3, False, (0, 2))
    >>> standing_in({"RINGLET_RANK": "1", "RINGLET_NUM_RANKS": "2"}).name
    'w1'
    """
    return _standing(tuple(environ.get(name, "") for name in _VARIABLES))


@functools.lru_cache(maxsize=8)
def _standing(texts: tuple[str, ...]) -> Standing:
    config, rank, num_ranks = texts
    if config:
        from ringlet.cluster.tf_config_parser import TFConfig  # loaded where there is a cluster

        told = TFConfig.of(config)
        return of_task(told.cluster_spec, told.task_type, told.task_id)
    if rank.strip().isdecimal() and num_ranks.strip().isdecimal():
        index, count = int(rank), int(num_ranks)
        return Standing(index, count, index == 0, neighbours=tuple(range(count)))
    return Standing()


def of_task(spec: ClusterSpec, task_type: str | None, task_id: int | None) -> Standing:
    """Give the place of a task in a cluster.

    Examples
    --------
    >>> from ringlet.cluster.cluster_spec import ClusterSpec
    >>> of_task(ClusterSpec({"chief": ["a:1"], "worker": ["b:1"]}), "worker", 0).name
    'w1'
    """
    if not spec.jobs or task_type is None or task_id is None:
        return Standing()
    from ringlet.cluster.cluster_queries import is_chief as leads
    from ringlet.cluster.cluster_queries import worker_tasks
    from ringlet.cluster.local_addresses import foreign_addresses  # as above

    if task_type not in ("chief", "worker"):
        count = spec.num_tasks(task_type) if task_type in spec.jobs else task_id + 1
        return Standing(task_id, count, leads(spec, task_type, task_id), task_type, neighbours=(task_id,))
    is_first = leads(spec, task_type, task_id)  # also sees that there is such a task
    tasks = worker_tasks(spec)
    addresses = [address for _, _, address in tasks]
    index = [(job, number) for job, number, _ in tasks].index((task_type, task_id))
    foreign = set(foreign_addresses(addresses, addresses[index]))
    here = tuple([i for i, address in enumerate(addresses) if address not in foreign])
    return Standing(index, len(tasks), is_first, job=str(sorted(spec.as_dict().items())), neighbours=here)
