"""Initial value of a variable on several workers: the chief's value, if all workers request the same variable."""

from __future__ import annotations

import json
from typing import Any

from numpy.typing import NDArray

from ringlet.errors import CollectiveAborted, CollectiveMismatchError
from ringlet.strategy.multi_worker.worker_group import WorkerGroup
from ringlet.strategy.replica.error_selection import one_line

__all__ = ["first_value_of_chief"]


def first_value_of_chief(workers: WorkerGroup, request: Any) -> NDArray[Any]:
    """Return the first worker's initial value on all workers; without one, they get CollectiveAborted."""
    value = problem = None
    try:
        value = request.first_value()
        mine = f"'{request.name or 'Variable'}' {value.dtype}{list(value.shape)}"
    except Exception as error:
        problem, mine = error, ""
    report = json.dumps([mine, problem and one_line(problem)]).encode()
    reports = [json.loads(each) for each in workers.exchange(report, "making a variable")]
    names = workers.cluster.names
    if problem is not None:
        raise problem
    for name, (_, failure) in zip(names, reports, strict=True):
        if failure is not None:
            raise CollectiveAborted(f"{name} could not create variable {mine}: {failure}")
    if any(requested != mine for requested, _ in reports):
        lines = "".join(f"\n  {name}: {requested}" for name, (requested, _) in zip(names, reports, strict=True))
        raise CollectiveMismatchError(
            f"the workers do not create the same variable:{lines}\nCreate the same variables in the same order, with "
            "equal names, shapes and dtypes, on every worker."
        )
    return workers.broadcast(value)
