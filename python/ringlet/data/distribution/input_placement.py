"""InputPlacement: the position of a worker and its replicas among all workers and replicas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import index

from ringlet.errors import InvalidArgumentError


@dataclass(frozen=True)
class InputPlacement:
    """The position of a worker's replicas: replica ``k`` of worker ``i`` has the number ``i * num_replicas + k``.

    All workers have the same number of replicas. `sum_over_workers` takes an int of this worker and returns the sum
    over all workers; unless data is infinite, it is called in each step, so that a worker without data continues with
    empty parts until no worker has data. Without it, workers end independently. `exchange` takes bytes of this worker
    and returns the bytes of all workers, in order; with it, the workers compare the kinds of elements at the first
    step, and raise errors from other workers' datasets. Both are collective calls.
    """

    num_replicas: int
    num_workers: int = 1
    worker_index: int = 0
    sum_over_workers: Callable[[int], int] | None = field(default=None, repr=False)
    exchange: Callable[[bytes], list[bytes]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if index(self.num_replicas) < 1:
            raise InvalidArgumentError(f"num_replicas must be one or more, got {self.num_replicas}")
        if index(self.num_workers) < 1:
            raise InvalidArgumentError(f"num_workers must be one or more, got {self.num_workers}")
        if not 0 <= index(self.worker_index) < self.num_workers:
            raise InvalidArgumentError(
                f"worker_index must be between 0 and {self.num_workers - 1} for {self.num_workers} workers, got "
                f"{self.worker_index}"
            )

    @property
    def total(self) -> int:
        """Number of replicas of all workers."""
        return self.num_replicas * self.num_workers

    @property
    def wraps(self) -> bool:
        """Whether steps hold PerReplica values: False only for a single replica in total."""
        return self.total > 1

    def sum(self, count: int) -> int:
        """Return the sum of `count` over all workers, or `count` without `sum_over_workers`."""
        return count if self.num_workers == 1 or self.sum_over_workers is None else self.sum_over_workers(count)
