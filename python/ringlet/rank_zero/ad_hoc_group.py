"""Where processes meet for one call of a helper, with or without a strategy."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ringlet.errors import CollectiveMismatchError, DeadlineExceededError, WorkerLostError
from ringlet.rank_zero.process_role import standing
from ringlet.strategy.multi_worker.ambient_worker_group import current_workers

__all__ = ["meet", "naming"]

# Every call has a meeting of its own, so that one that fails ends no other; processes of one program count alike.
_calls = itertools.count()


def meet(title: str, indices: Sequence[int], timeout_seconds: float | None = None) -> Any:
    """Give the member of this process in a group of some processes of the job, which all call this.

    Parameters
    ----------
    title : str
        What they do, for messages.
    indices : sequence of int
        Of the processes, in the order of their ranks; the same on all, and this one's among them.
    timeout_seconds : float, optional
        As collectives take it.

    Raises
    ------
    CollectiveMismatchError
        On all, at once, if one of them does something else.
    DeadlineExceededError
        If some do not come in time.
    """
    place, workers = standing(), current_workers()
    job = place.job if workers is None else workers.job
    digest = hashlib.sha256(job.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    from ringlet.collectives import init_process_group  # loaded where there are processes

    group = f"helpers, call {next(_calls)} of the processes with w{indices[0]}, {digest}"
    with naming(title):
        member = init_process_group(indices.index(place.index), len(indices), group, timeout_seconds)
        try:
            member.barrier(title)
        except BaseException as error:
            member.__exit__(type(error), error, error.__traceback__)
            raise
    return member


@contextmanager
def naming(title: str) -> Iterator[None]:
    """Put what was done before the text of errors that tell of other processes.

    Examples
    --------
    >>> with naming("download"):
    ...     raise DeadlineExceededError("waited 3 s for rank 1")
    Traceback (most recent call last):
    ringlet.errors.DeadlineExceededError: download: waited 3 s for rank 1
    """
    try:
        yield
    except (CollectiveMismatchError, DeadlineExceededError, WorkerLostError) as error:
        error.args = (f"{title}: {error}", *error.args[1:])
        raise
