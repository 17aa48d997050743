"""What a task is among the workers of a cluster: its place, how many there are, and which of them is the chief."""

from __future__ import annotations

from typing import Any

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.config_errors import Fault
from ringlet.cluster.resolvers.base_resolver import ClusterResolver
from ringlet.cluster.task_validation import check_complete, check_given, check_task, num_tasks
from ringlet.errors import ClusterConfigError

__all__ = [
    "check_workers",
    "collective_leader",
    "id_in_cluster",
    "is_chief",
    "normalized",
    "worker_count",
    "worker_tasks",
]


def normalized(cluster_spec: Any) -> ClusterSpec:
    """Give a cluster as a ClusterSpec.

    Parameters
    ----------
    cluster_spec : dict, ClusterDef or ClusterSpec
        The cluster.

    Returns
    -------
    ClusterSpec

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if isinstance(cluster_spec, ClusterSpec):
        return cluster_spec
    if isinstance(cluster_spec, dict) or hasattr(cluster_spec, "SerializeToString"):
        return ClusterSpec(cluster_spec)
    raise ValueError(
        f"`cluster_spec' should be dict or a `tf.train.ClusterSpec` or a `tf.train.ClusterDef` object, not "
        f"{cluster_spec!r}"
    )


def is_chief(cluster_spec: Any = None, task_type: str | None = None, task_id: int | None = None) -> bool:
    """Tell whether a task is the chief: the job ``chief``, else worker 0; an evaluator is one for itself.

    Parameters
    ----------
    cluster_spec : dict, ClusterDef or ClusterSpec
        The cluster.
    task_type : str
        Job of the task.
    task_id : int
        Index of the task in its job.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If the cluster has jobs that are no workers, parameter servers or evaluators, has two chiefs or two evaluators,
        or has no such task.

    Examples
    --------
    >>> is_chief({"worker": ["a:1", "b:1"]}, "worker", 0), is_chief({"chief": ["c:1"], "worker": ["a:1"]}, "worker", 0)
    (True, False)
    """
    spec = _checked(cluster_spec, task_type, task_id)
    return task_type in ("chief", "evaluator") or (task_type == "worker" and task_id == 0 and "chief" not in spec.jobs)


def id_in_cluster(cluster_spec: Any, task_type: str | None, task_id: int | None) -> int:
    """Give the place of a task among the workers: the chief is the first, the job ``worker`` follows.

    Parameters
    ----------
    cluster_spec : dict, ClusterDef or ClusterSpec
        The cluster.
    task_type : str
        Job of the task.
    task_id : int
        Index of the task in its job.

    Returns
    -------
    int
        From 0 to ``worker_count(cluster_spec, task_type) - 1``. An evaluator is apart from the workers.

    Raises
    ------
    ValueError
        As of `is_chief`, and if the task is a parameter server.

    Examples
    --------
    >>> id_in_cluster({"chief": ["c:1"], "worker": ["a:1", "b:1"]}, "worker", 1)
    2
    """
    spec = _checked(cluster_spec, task_type, task_id)
    try:
        return _place(spec, task_type, task_id)
    except Fault as fault:
        raise _error(fault) from None


def worker_count(cluster_spec: Any, task_type: str | None) -> int:
    """Give how many workers there are, the chief among them; for an evaluator, how many evaluators.

    Parameters
    ----------
    cluster_spec : dict, ClusterDef or ClusterSpec
        The cluster.
    task_type : str
        Job of the task that asks.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        As of `id_in_cluster`, and if an evaluator asks that the cluster does not have.

    Examples
    --------
    >>> worker_count({"chief": ["c:1"], "worker": ["a:1", "b:1"], "ps": ["p:1"]}, "worker")
    3
    """
    spec = _checked(cluster_spec, task_type, 0)
    if task_type not in ("chief", "worker", "evaluator"):
        raise ValueError(f"Unexpected `task_type` {task_type!r}: only chief, worker and evaluator run replicas")
    if task_type == "evaluator":
        return spec.num_tasks("evaluator")
    return num_tasks(spec, "chief") + num_tasks(spec, "worker")


def collective_leader(cluster_spec: Any, task_type: str | None, task_id: int | None) -> str:
    """Give the name of the task that leads the workers.

    Parameters
    ----------
    cluster_spec : dict, ClusterDef or ClusterSpec
        The cluster.
    task_type : str
        Job of the task that asks.
    task_id : int
        Index of that task in its job.

    Returns
    -------
    str
        An empty text for an evaluator, and where there is no cluster.

    Raises
    ------
    ValueError
        As of `is_chief`, and if there is neither a chief nor a worker.

    Examples
    --------
    >>> collective_leader({"worker": ["a:1", "b:1"]}, "worker", 1)
    '/job:worker/replica:0/task:0'
    """
    spec = normalized(cluster_spec)
    if not spec:
        return ""
    _checked(spec, task_type, task_id)
    if task_type == "evaluator":
        return ""
    for job in ("chief", "worker"):
        if job in spec.jobs:
            return f"/job:{job}/replica:0/task:0"
    raise ValueError(f"there is neither a chief nor a worker to lead {spec}")


def worker_tasks(cluster_spec: Any) -> list[tuple[str, int, str]]:
    """Give the workers of a cluster in the order of their ranks.

    Parameters
    ----------
    cluster_spec : dict, ClusterDef or ClusterSpec
        The cluster.

    Returns
    -------
    list of tuple
        Job, index in it, and address of each.

    Examples
    --------
    >>> worker_tasks({"worker": ["a:1", "b:1"], "ps": ["p:1"], "chief": ["c:1"]})
    [('chief', 0, 'c:1'), ('worker', 0, 'a:1'), ('worker', 1, 'b:1')]
    """
    spec = normalized(cluster_spec)
    return [
        (job, index, spec.task_address(job, index))
        for job in ("chief", "worker")
        if job in spec.jobs
        for index in spec.task_indices(job)
    ]


def check_workers(
    cluster_spec: Any, task_type: str | None, task_id: int | None, resolver: ClusterResolver | None = None
) -> None:
    """Check that the workers of a cluster can meet, and that a task is one of them.

    Parameters
    ----------
    cluster_spec : dict, ClusterDef or ClusterSpec
        The cluster.
    task_type : str
        Job of this task.
    task_id : int
        Index of this task in its job.
    resolver : ClusterResolver, optional
        Who said so, for messages.

    Raises
    ------
    ClusterConfigError
        As of `id_in_cluster`; if task type or index are not known; if an index is missing among the workers, or two of
        them have one address.

    Examples
    --------
    >>> check_workers({"worker": ["a:1", "a:1"]}, "worker", 0)
    Traceback (most recent call last):
    ringlet.errors.ClusterConfigError: worker 0 and worker 1 have one address: give each task one of its own, such as
    another port. The cluster, at $.cluster.worker[1]: found 'a:1'; allowed: any other port: on one machine ports are
    names, nobody listens on them.
    """
    spec = normalized(cluster_spec)
    try:
        check_given(task_type, task_id)
        check_task(spec, task_type, task_id)
        _place(spec, task_type, task_id)
        if task_id is not None and task_id < 0:
            text = f"there is no {task_type} {task_id}"
            raise Fault(text, "tasks are numbered from 0", ["task", "index"], found=task_id, instead=0)
        check_complete(spec, worker_tasks(spec))
    except Fault as fault:
        raise _error(fault, resolver) from None


def _checked(cluster_spec: Any, task_type: str | None, task_id: int | None) -> ClusterSpec:
    spec = normalized(cluster_spec)
    try:
        check_task(spec, task_type, task_id)
    except Fault as fault:
        raise _error(fault) from None
    return spec


def _place(spec: ClusterSpec, task_type: str | None, task_id: int | None) -> int:
    if task_type == "chief":
        return 0
    if task_type == "worker" and task_id is not None:
        return task_id + num_tasks(spec, "chief")
    if task_type == "evaluator" and task_id is not None:
        return task_id
    text = f"There is no id for task_type {task_type!r}"
    raise Fault(text, "'chief', 'worker' and 'evaluator', which run replicas", ["task", "type"], found=task_type)


def _error(fault: Fault, resolver: ClusterResolver | None = None) -> ClusterConfigError:
    return fault.as_error("The cluster", "") if resolver is None else resolver._error_of(fault)
