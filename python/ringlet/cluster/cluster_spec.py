"""ClusterSpec: the tasks of a cluster and their addresses."""

from __future__ import annotations

from typing import Any

from ringlet.cluster.cluster_def import ClusterDef, JobDef
from ringlet.cluster.cluster_spec_parser import Jobs, read_jobs
from ringlet.cluster.config_errors import ABSENT, Fault, corrected, json_path, shown
from ringlet.errors import ClusterConfigError

_MOST_LISTED = 10_000_000  # longest list that job_tasks() returns
_EXAMPLE_CHARACTERS = 300


class ClusterSpec:
    """The jobs of a cluster, such as ``worker``, and the addresses of their tasks (``tf.train.ClusterSpec``).

    Parameters
    ----------
    cluster : dict, ClusterDef or ClusterSpec
        Dictionary from job names to lists of addresses or, for sparse jobs, to dictionaries from task indices to
        addresses. TensorFlow's ``tf.train.ClusterDef`` is also accepted.

    Raises
    ------
    ClusterConfigError
        If the cluster is invalid; for wrong types the error is also a ``TypeError``.

    Examples
    --------
    >>> spec = ClusterSpec({"worker": ["a:2222", "b:2222"], "ps": {1: "c:2222"}})
    >>> spec
    ClusterSpec({'ps': {1: 'c:2222'}, 'worker': ['a:2222', 'b:2222']})
    >>> spec.jobs, spec.num_tasks("worker"), spec.task_indices("ps"), spec.task_address("worker", 1)
    (['worker', 'ps'], 2, [1], 'b:2222')
    >>> ClusterSpec({"worker": "a:2222"})
    Traceback (most recent call last):
    ringlet.errors.ClusterConfigError: The tasks for job 'worker' must be a list or a dictionary from
    integers to strings. ClusterSpec, at $.worker: found 'a:2222'; allowed: a list of addresses, as ["host:port"], or a
    dictionary from task indices to them, as {"0": "host:port"}. Corrected: ClusterSpec({'worker': ['a:2222']})
    """

    _jobs: Jobs

    def __init__(self, cluster: Any) -> None:
        if isinstance(cluster, ClusterSpec):
            cluster = cluster.as_cluster_def()
        if hasattr(cluster, "job") and hasattr(cluster, "SerializeToString"):
            cluster = {job.name: dict(job.tasks.items()) for job in cluster.job}
        try:
            self._jobs = read_jobs(cluster)
        except Fault as fault:
            raise fault.as_error("ClusterSpec", _example(cluster, fault)) from None

    @classmethod
    def _of(cls, jobs: Jobs) -> ClusterSpec:
        spec = cls({})
        spec._jobs = jobs
        return spec

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return self._jobs == (other._jobs if isinstance(other, ClusterSpec) else other)

    __hash__ = None  # type: ignore[assignment]  # as TensorFlow's

    def __repr__(self) -> str:
        tasks = self.as_dict()
        return f"ClusterSpec({{{', '.join(f'{job!r}: {tasks[job]!r}' for job in sorted(tasks))}}})"

    @property
    def jobs(self) -> list[Any]:
        """The names of the jobs: in the order passed to the constructor, or sorted if that was a ClusterSpec."""
        return list(self._jobs)

    def as_dict(self) -> dict[Any, Any]:
        """Return the tasks of each job.

        Returns
        -------
        dict
            Job names to lists of addresses, or to dictionaries from task indices to addresses if indices are missing or
            the job has no tasks.
        """
        return {
            job: list(map(tasks.get, range(len(tasks))))
            if max(tasks, default=0) + 1 == len(tasks)
            else dict(sorted(tasks.items()))
            for job, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> ClusterDef:
        """Return the cluster as a message, with TensorFlow's encoding.

        Returns
        -------
        ClusterDef
            The jobs are sorted by name.
        """
        return ClusterDef(
            tuple(
                JobDef(_as_text(job), {index: _as_text(address) for index, address in sorted(tasks.items())})
                for job, tasks in sorted(self._jobs.items(), key=lambda item: _as_text(item[0]))
            )
        )

    def num_tasks(self, job_name: str) -> int:
        """Return the number of tasks of a job.

        Parameters
        ----------
        job_name : str
            Name of a job of this cluster.

        Returns
        -------
        int

        Raises
        ------
        ClusterConfigError
            If there is no such job.
        """
        return len(self._tasks(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Return the indices of a job's tasks, in ascending order.

        Parameters
        ----------
        job_name : str
            Name of a job of this cluster.

        Returns
        -------
        list of int

        Raises
        ------
        ClusterConfigError
            If there is no such job.
        """
        return sorted(self._tasks(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Return the address of a task.

        Parameters
        ----------
        job_name : str
            Name of a job of this cluster.
        task_index : int
            Index of a task of that job.

        Returns
        -------
        str

        Raises
        ------
        ClusterConfigError
            If the job or the task does not exist.
        """
        tasks = self._tasks(job_name)
        if task_index not in tasks:
            raise ClusterConfigError(
                f"No task with index {shown(task_index)} in job {shown(job_name)}; its tasks: {_listed(sorted(tasks))}",
                json_path([job_name]),
            )
        address: str = tasks[task_index]
        return address

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Return the addresses of the tasks of a job as a list.

        Parameters
        ----------
        job_name : str
            Name of a job of this cluster.

        Returns
        -------
        list of str or None
            One entry for each index up to the largest; None for the missing tasks of a sparse job.

        Raises
        ------
        ClusterConfigError
            If the job does not exist, has no tasks, or the list would have more than ten million entries.
        """
        tasks = self._tasks(job_name)
        length = max(tasks, default=-1) + 1
        if not 0 < length <= _MOST_LISTED:
            fault = f"its largest index is {length - 1}: use task_indices()" if tasks else "it has no tasks"
            raise ClusterConfigError(
                f"cannot list the tasks of job {shown(job_name)}, because {fault}", json_path([job_name])
            )
        return [tasks.get(index) for index in range(length)]

    def _tasks(self, job_name: str) -> dict[int, Any]:
        if job_name not in self._jobs:
            raise ClusterConfigError(f"No such job in cluster: {shown(job_name)}. Its jobs: {_listed(self.jobs)}", "$")
        return self._jobs[job_name]


def _as_text(text: str | bytes) -> str:
    return text.decode() if isinstance(text, bytes) else text


def _listed(items: list[Any]) -> str:
    if not items:
        return "none"
    first = ", ".join(map(shown, items[:8]))
    return first if len(items) <= 8 else f"{first} and {len(items) - 8} more"


def _example(cluster: Any, fault: Fault) -> str:
    better = corrected(cluster, fault)
    text = f"ClusterSpec({better!r})"
    if better is not ABSENT and len(text) <= _EXAMPLE_CHARACTERS:
        return f"Corrected: {text}"
    return "For example: ClusterSpec({'worker': ['localhost:2222', 'localhost:2223']})"
