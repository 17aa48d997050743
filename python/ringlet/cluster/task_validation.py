"""Task validation: checks of a cluster and a task. Errors name the path in a ``TF_CONFIG``."""

from __future__ import annotations

from typing import Any

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.config_errors import ABSENT, Fault, shown

TASK_TYPES = ("chief", "worker", "evaluator", "ps")

_KINDS = "'chief', 'worker', 'ps' and 'evaluator'"


def num_tasks(spec: ClusterSpec, job: str | None) -> int:
    """Return the number of tasks of a job, 0 if the job does not exist."""
    return spec.num_tasks(job) if job is not None and job in spec.jobs else 0


def check_given(task_type: object, task_id: object) -> None:
    """Raise a `Fault` unless the task type and the task index are given."""
    if task_type is not None and task_id is not None:
        return
    text = "When `cluster_spec` is given, you must also specify `task_type` and `task_id`"
    if task_type is None:
        allowed = 'a task such as {"type": "worker", "index": 0}; or set task_type and task_id on the resolver'
        raise Fault(text, allowed, ["task"], instead={"type": "worker", "index": 0})
    raise Fault(text, f"the index of this {task_type}, from 0", ["task", "index"], instead=0)


def check_task(spec: ClusterSpec, task_type: str | None, task_id: int | None) -> None:
    """Check a task and its cluster, as TensorFlow does; an evaluator need not be in the cluster."""
    _check_jobs(spec, task_type)
    if task_type not in spec.jobs:
        return
    if task_id is None:
        raise TypeError(f"`task_id` must be given with `task_type` {task_type!r}: it is None")
    count = num_tasks(spec, task_type)
    if task_id >= count:
        allowed = _numbers(count)
        text = f"The `task_id` {task_id} exceeds the maximum id of {task_type}"
        raise Fault(text, allowed, ["task", "index"], found=task_id, instead=0 if count else ABSENT)


def _check_jobs(spec: ClusterSpec, task_type: str | None) -> None:
    other = next((job for job in spec.jobs if job not in TASK_TYPES), None)
    if other is not None:
        text = (
            f"Disallowed task type found in cluster spec. Allowed types are {TASK_TYPES} and the cluster spec is "
            f"{_short(spec)}"
        )
        near = _nearest(other)
        nearest = f"{_KINDS}; the nearest is {near!r}" if near else _KINDS
        renamed = near if near and near not in spec.jobs else ABSENT
        raise Fault(text, nearest, ["cluster", other], found=other, renamed=renamed)
    keys = ["task", "type"]
    if task_type is not None and task_type not in TASK_TYPES:
        text = f"Unrecognized task_type: {task_type}, valid task types are: {TASK_TYPES}"
        near = _nearest(task_type)
        nearest = f"{_KINDS}; the nearest is {near!r}" if near else _KINDS
        raise Fault(text, nearest, keys, found=task_type, instead=near if near in spec.jobs else _first(spec))
    if task_type and task_type not in spec.jobs and task_type != "evaluator":
        text = f"`task_type` {task_type!r} not found in cluster_spec"
        jobs = ", ".join(map(shown, spec.jobs)) or "none, as the cluster has no jobs"
        raise Fault(text, jobs, keys, found=task_type, instead=_first(spec))
    for job in ("chief", "evaluator"):
        if num_tasks(spec, job) > 1:
            found = spec.as_dict()[job]
            raise Fault(f"There must be at most one {job!r} job", f"one {job}", ["cluster", job], found=found)


def check_complete(spec: ClusterSpec, workers: list[tuple[str, int, str]]) -> None:
    """Raise a `Fault` if an index of a worker is missing, or if two workers have the same address.

    `workers` holds the job, the index and the address of each worker.
    """
    for job in ("chief", "worker"):
        present = spec.task_indices(job) if job in spec.jobs else []
        missing = next((i for i, index in enumerate(present) if i != index), None)
        if missing is not None:
            text = f"{job} {missing} is missing: give every worker the address of every worker"
            raise Fault(text, f"the tasks {_numbers(present[-1] + 1)}", ["cluster", job], found=spec.as_dict()[job])
    holders: dict[Any, str] = {}
    for job, index, address in workers:
        name = f"{job} {index}"
        other = holders.setdefault(address, name)
        if other != name:
            text = (
                f"{other} and {name} have the same address: give each task its own address, for example with another "
                "port"
            )
            allowed = (
                "any port that no other task has (it need not be free: on one machine Ringlet does not listen on it)"
            )
            raise Fault(text, allowed, ["cluster", job, index], found=address)


def _numbers(count: int) -> str:
    return f"0 to {count - 1}" if count > 1 else "0" if count else "none, as there are no tasks"


def _nearest(task_type: str) -> str | None:
    from difflib import get_close_matches  # imported here because only errors need it

    if task_type.lower() == "master":  # TensorFlow 1's name
        return "chief"
    return next(iter(get_close_matches(task_type.lower(), TASK_TYPES, n=1)), None)


def _first(spec: ClusterSpec) -> Any:
    return next((job for job in ("worker", "chief") if num_tasks(spec, job)), ABSENT)


def _short(spec: ClusterSpec) -> str:
    text = repr(spec)
    return text if len(text) <= 500 else f"{text[:400]}...{text[-97:]}"
