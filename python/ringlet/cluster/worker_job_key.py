"""The job of a cluster's workers, and the names of tasks in messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from ringlet.rendezvous.job_key import Job, listed


def task_name(task_type: str, task_id: int) -> str:
    """Return the name of a task in messages, as in device strings."""
    return f"/job:{task_type}/task:{task_id}"


@dataclass(frozen=True)
class ClusterJob(Job):
    """Base class of the jobs whose processes are tasks of a cluster."""

    KEEP_APART: ClassVar[str] = "give each of them its own RINGLET_JOB_ID"

    @property
    def taken(self) -> str:
        """The cause and the remedy in messages about a task that another process holds."""
        return (
            "two processes were started as this task, or another job with this cluster is running. Start each task "
            "once, and give each job its own RINGLET_JOB_ID"
        )


@dataclass(frozen=True)
class WorkersJob(ClusterJob):
    """A job whose processes are the workers of a cluster, each with the same number of ranks.

    `tasks` are the names of the workers in rank order, `number` is the number of the strategy in the program, counted
    from 1, `command` starts all workers, and `configuration` names the setting that must be equal in all workers.
    """

    tasks: tuple[str, ...] = ()
    number: int = 1
    command: str = "ringlet run"
    configuration: str = 'the same "cluster" in TF_CONFIG'

    @property
    def start_alike(self) -> str:
        """The remedy in messages about processes that did not connect."""
        return (
            f"Start every task once, as one user, with {self.configuration} and the same RINGLET_JOB_ID "
            f"(`{self.command}` starts all)"
        )

    def names_of(self, ranks: Iterable[int]) -> str:
        """Return the names of the workers that have these ranks."""
        each = self.num_ranks // len(self.tasks)
        return listed([self.tasks[worker] for worker in sorted({rank // each for rank in ranks})])

    def size_text(self, num_ranks: int) -> str:
        """Return text for `num_ranks` workers, each of which is one rank."""
        return f"a cluster of {num_ranks} workers"

    def __str__(self) -> str:
        which = "" if self.number == 1 else f" for strategy {self.number} of the program"
        job = f" (RINGLET_JOB_ID {self.job_id!r})" if self.job_id else ""
        return f"the {len(self.tasks)} workers of the cluster{which}{job}"
