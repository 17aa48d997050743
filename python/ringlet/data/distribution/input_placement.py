"""The place of a worker, and of its replicas, among all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import index

from ringlet.errors import InvalidArgumentError

__all__ = ["Place"]


@dataclass(frozen=True)
class Place:
    """Which replicas a worker feeds: replica ``k`` of worker ``i`` is number ``i * num_replicas + k`` of all.

    Parameters
    ----------
    num_replicas : int
        Replicas of this worker; all workers have the same number.
    num_workers : int, default 1
    worker_index : int, default 0
    sum_over_workers : callable, optional
        Takes an int of this worker, and gives the sum over all workers; all of them call it together. With several
        workers it is called once for each step, so that a worker without data goes on with empty parts until no worker
        has any. Without it, each worker ends by itself.
    exchange : callable, optional
        Takes bytes of this worker, and gives those of all, in their order; all of them call it together. With it they
        compare what elements look like at the first step, and hear of errors in each other's datasets.

    Raises
    ------
    InvalidArgumentError
        If a number is out of range.

    Examples
    --------
    >>> Place(2, num_workers=3).total
    6
    """

    num_replicas: int
    num_workers: int = 1
    worker_index: int = 0
    sum_over_workers: Callable[[int], int] | None = field(default=None, repr=False)
    exchange: Callable[[bytes], list[bytes]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if index(self.num_replicas) < 1:
            raise InvalidArgumentError(f"a dataset is distributed to one replica or more, not to {self.num_replicas}")
        if index(self.num_workers) < 1:
            raise InvalidArgumentError(f"a dataset is distributed to one worker or more, not to {self.num_workers}")
        if not 0 <= index(self.worker_index) < self.num_workers:
            raise InvalidArgumentError(
                f"worker_index counts from 0 to {self.num_workers - 1} with {self.num_workers} workers, got "
                f"{self.worker_index}"
            )

    @property
    def total(self) -> int:
        """Number of replicas of all workers."""
        return self.num_replicas * self.num_workers

    @property
    def wraps(self) -> bool:
        """Whether steps hold PerReplica, which they do not where there is only one replica anywhere."""
        return self.total > 1

    def sum(self, count: int) -> int:
        """Give the sum of `count` over all workers; `count` itself where nobody else is asked."""
        return count if self.num_workers == 1 or self.sum_over_workers is None else self.sum_over_workers(count)
