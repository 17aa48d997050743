"""The first value of a variable of several workers: the chief's, after all have seen that they mean one variable."""

from __future__ import annotations

import json
from typing import Any

from numpy.typing import NDArray

from ringlet.errors import CollectiveAborted, CollectiveMismatchError
from ringlet.strategy.multi_worker.worker_group import Workers
from ringlet.strategy.replica.error_selection import one_line

__all__ = ["first_value_of_chief"]


def first_value_of_chief(workers: Workers, request: Any) -> NDArray[Any]:
    """Give the array that a new variable begins with on all workers.

    Parameters
    ----------
    workers : Workers
    request : VariableRequest
        What this worker asks for.

    Returns
    -------
    ndarray
        What the first worker asks for.

    Raises
    ------
    CollectiveMismatchError
        On all workers, if name, shape or dtype differ.
    CollectiveAborted
        If another worker could not make its first value. The error of that worker is raised there.
    """
    value = problem = None
    try:
        value = request.first_value()
        mine = f"'{request.name or 'Variable'}' {value.dtype}{list(value.shape)}"
    except Exception as error:
        problem, mine = error, ""
    report = json.dumps([mine, problem and one_line(problem)]).encode()
    told = [json.loads(each) for each in workers.exchange(report, "making a variable")]
    names = workers.cluster.names
    if problem is not None:
        raise problem
    for name, (_, what) in zip(names, told, strict=True):
        if what is not None:
            raise CollectiveAborted(f"{name} could not make variable {mine}: {what}")
    if any(asked != mine for asked, _ in told):
        lines = "".join(f"\n  {name}: {asked}" for name, (asked, _) in zip(names, told, strict=True))
        raise CollectiveMismatchError(
            f"the workers do not make the same variable:{lines}\nMake the same variables in the same order, with equal "
            "names, shapes and dtypes, on every worker."
        )
    return workers.broadcast(value)
