"""Cluster queries: index, number and chief of the workers of a cluster."""

from __future__ import annotations

from typing import Any

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.config_errors import Fault
from ringlet.cluster.resolvers.base_resolver import ClusterResolver
from ringlet.cluster.task_validation import check_complete, check_given, check_task, num_tasks
from ringlet.errors import ClusterConfigError


def normalized(cluster_spec: Any) -> ClusterSpec:
    """Convert a dict, ClusterDef or ClusterSpec to a ClusterSpec; raise ValueError for other types."""
    if isinstance(cluster_spec, ClusterSpec):
        return cluster_spec
    if isinstance(cluster_spec, dict) or hasattr(cluster_spec, "SerializeToString"):
        return ClusterSpec(cluster_spec)
    raise ValueError(
        f"`cluster_spec' should be dict or a `tf.train.ClusterSpec` or a `tf.train.ClusterDef` object, not "
        f"{cluster_spec!r}"
    )


def is_chief(cluster_spec: Any = None, task_type: str | None = None, task_id: int | None = None) -> bool:
    """Return whether a task is the chief: job ``chief`` or, without one, worker 0. An evaluator is its own chief."""
    spec = _checked(cluster_spec, task_type, task_id)
    return task_type in ("chief", "evaluator") or (task_type == "worker" and task_id == 0 and "chief" not in spec.jobs)


def id_in_cluster(cluster_spec: Any, task_type: str | None, task_id: int | None) -> int:
    """Return the index of a task among the workers: the chief comes first, then the job ``worker``.

    Evaluators are numbered separately; a parameter server raises ValueError.
    """
    spec = _checked(cluster_spec, task_type, task_id)
    try:
        return _place(spec, task_type, task_id)
    except Fault as fault:
        raise _error(fault) from None


def worker_count(cluster_spec: Any, task_type: str | None) -> int:
    """Return the number of workers, including the chief; for an evaluator, the number of evaluators."""
    spec = _checked(cluster_spec, task_type, 0)
    if task_type not in ("chief", "worker", "evaluator"):
        raise ValueError(f"Unexpected `task_type` {task_type!r}: only chief, worker and evaluator run replicas")
    if task_type == "evaluator":
        return spec.num_tasks("evaluator")
    return num_tasks(spec, "chief") + num_tasks(spec, "worker")


def collective_leader(cluster_spec: Any, task_type: str | None, task_id: int | None) -> str:
    """Return the name of the chief or, without one, of worker 0; empty for evaluators and in an empty cluster."""
    spec = normalized(cluster_spec)
    if not spec:
        return ""
    _checked(spec, task_type, task_id)
    if task_type == "evaluator":
        return ""
    for job in ("chief", "worker"):
        if job in spec.jobs:
            return f"/job:{job}/replica:0/task:0"
    raise ValueError(f"{spec} has neither a chief nor a worker: add one, as in {{'worker': ['host:port']}}")


def worker_tasks(cluster_spec: Any) -> list[tuple[str, int, str]]:
    """Return the job, the index and the address of each worker, in rank order."""
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
    """Check that the workers of a cluster can form a group to which a task belongs.

    Errors name the source of the cluster, if a resolver is given.
    """
    spec = normalized(cluster_spec)
    try:
        check_given(task_type, task_id)
        check_task(spec, task_type, task_id)
        _place(spec, task_type, task_id)
        if task_id is not None and task_id < 0:
            text = f"{task_type} {task_id} does not exist"
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
