"""The job of a coordinator and of the servers that join it by the description of their cluster."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.worker_job_key import task_name
from ringlet.rendezvous.job_key import Job, listed

__all__ = ["ServersJob", "Task"]

Task = tuple[str, int]
"""Type and index of a task: ``("worker", 0)``."""


@dataclass(frozen=True)
class ServersJob(Job):
    """A job whose rank 0 is the coordinator; the others are the workers and parameter servers of a cluster.

    Attributes
    ----------
    tasks : tuple of Task
        All but the coordinator, in rank order.

    Examples
    --------
    >>> job = ServersJob.of(ClusterSpec({"worker": ["a:1", "b:1"], "ps": ["c:1"], "chief": ["d:1"]}), "")
    >>> job.tasks
    (('worker', 0), ('worker', 1), ('ps', 0))
    >>> job.who([0, 3]), job.rank_of(("worker", 1))
    ('the coordinator and /job:ps/task:0', 2)
    """

    tasks: tuple[Task, ...] = ()

    KEEP_APART: ClassVar[str] = "give each of them its own RINGLET_JOB_ID"

    @classmethod
    def of(cls, spec: ClusterSpec, job_id: str) -> ServersJob:
        """Give the job of a cluster: the same for all who know its workers and parameter servers by the same addresses.

        Raises
        ------
        ClusterConfigError
            If it has no job ``worker`` or no job ``ps``.
        """
        tasks = tuple((job, index) for job in ("worker", "ps") for index in spec.task_indices(job))
        known = [(*task, str(spec.task_address(*task))) for task in tasks]
        return cls(f"servers {json.dumps(known)}", job_id, 1 + len(tasks), tasks)

    def rank_of(self, task: Task) -> int:
        """Give the rank of a task."""
        return 1 + self.tasks.index(task)

    @property
    def taken(self) -> str:
        """What messages say where another process is this task already."""
        return (
            "two processes were started as this task, or another job with this cluster is running. Give each process a "
            "task of its own, and each of two jobs its own RINGLET_JOB_ID"
        )

    @property
    def start_alike(self) -> str:
        """What messages advise where processes do not find each other."""
        return (
            "Start a ringlet.Server for every task once, as the user of the coordinator, with the same cluster and the "
            "same RINGLET_JOB_ID"
        )

    def who(self, ranks: Iterable[int]) -> str:
        """Name the tasks that have these ranks."""
        return listed([task_name(*self.tasks[rank - 1]) if rank else "the coordinator" for rank in sorted(ranks)])

    def __str__(self) -> str:
        job = f" (RINGLET_JOB_ID {self.job_id!r})" if self.job_id else ""
        return f"the cluster of {len(self.tasks)} servers{job}"
