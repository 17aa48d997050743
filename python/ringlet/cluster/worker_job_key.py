"""The job of a cluster's workers, whose messages name tasks as TF_CONFIG does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from ringlet.rendezvous.job_key import Job, listed

__all__ = ["WorkersJob", "task_name"]


def task_name(task_type: str, task_id: int) -> str:
    """Name a task in messages, as device strings do.

    Examples
    --------
    >>> task_name("worker", 1)
    '/job:worker/task:1'
    """
    return f"/job:{task_type}/task:{task_id}"


@dataclass(frozen=True)
class WorkersJob(Job):
    """A job whose processes are the workers of a cluster, with as many ranks each.

    Attributes
    ----------
    tasks : tuple of str
        What each worker is called, in rank order.
    number : int
        Which of the program's strategies it is, from 1.
    command : str
        What starts all of them.

    Examples
    --------
    >>> job = WorkersJob("a cluster", "", 4, ("/job:chief/task:0", "/job:worker/task:0"))
    >>> job.who([2, 3]), job.who([0, 1, 2])
    ('/job:worker/task:0', '/job:chief/task:0 and /job:worker/task:0')
    >>> str(job)
    'the 2 workers of the cluster'
    """

    tasks: tuple[str, ...] = ()
    number: int = 1
    command: str = "ringlet run"

    KEEP_APART: ClassVar[str] = "give each of them its own RINGLET_JOB_ID"

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
            'Start every task once, as one user, with the same "cluster" in TF_CONFIG and the same RINGLET_JOB_ID '
            f"(`{self.command}` starts all)"
        )

    def who(self, ranks: Iterable[int]) -> str:
        """Name the workers that have these ranks."""
        each = self.num_ranks // len(self.tasks)
        return listed([self.tasks[worker] for worker in sorted({rank // each for rank in ranks})])

    def __str__(self) -> str:
        which = "" if self.number == 1 else f" for strategy {self.number} of the program"
        job = f" (RINGLET_JOB_ID {self.job_id!r})" if self.job_id else ""
        return f"the {len(self.tasks)} workers of the cluster{which}{job}"
