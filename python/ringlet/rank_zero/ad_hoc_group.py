"""Collective group for a single call of a helper, with or without a strategy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ringlet.errors import CollectiveMismatchError, DeadlineExceededError, WorkerLostError
from ringlet.rank_zero.process_role import process_role
from ringlet.strategy.multi_worker.ambient_worker_group import current_workers

# Each call creates its own group, so that a failed call does not affect later calls. Counts are equal on all processes.
_calls = itertools.count()


def join_group(title: str, indices: Sequence[int], timeout_seconds: float | None = None) -> Any:
    """Create a group of the processes that make this call, and return the member of this process.

    `title` is the name of the call in messages. `indices` are the indices of the processes in rank order, equal on all
    processes.
    """
    import hashlib

    role, workers = process_role(), current_workers()
    job = role.job if workers is None else workers.job
    digest = hashlib.sha256(job.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    from ringlet.collectives import init_process_group

    group = f"rank_zero call {next(_calls)} of the processes with w{indices[0]}, {digest}"
    with error_prefix(title):
        member = init_process_group(indices.index(role.index), len(indices), group, timeout_seconds)
        try:
            member.barrier(title)
        except BaseException as error:
            member.__exit__(type(error), error, error.__traceback__)
            raise
    return member


@contextmanager
def error_prefix(title: str) -> Iterator[None]:
    """Prefix errors about other processes with the name of the call."""
    try:
        yield
    except (CollectiveMismatchError, DeadlineExceededError, WorkerLostError) as error:
        error.args = (f"{title}: {error}", *error.args[1:])
        raise
