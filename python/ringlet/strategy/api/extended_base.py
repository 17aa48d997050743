"""What every part of a strategy's extended object is built on."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ringlet import context, nest
from ringlet.strategy.api.context_checks import StrategyScope
from ringlet.values import DistributedValues, check_components, select_replica

if TYPE_CHECKING:
    from ringlet.strategy.api.strategy import Strategy

__all__ = ["ExtendedBase"]


class ExtendedBase:
    """The link to the strategy, and how many replicas there are.

    Parameters
    ----------
    container_strategy : Strategy
        The strategy that this belongs to; not kept alive.
    """

    def __init__(self, container_strategy: Strategy) -> None:
        self._bind(container_strategy)

    def _bind(self, container_strategy: Strategy) -> None:
        if not hasattr(type(container_strategy), "extended"):
            raise TypeError(
                "container_strategy is the strategy that this extended object belongs to, got "
                f"{container_strategy!r} of type {type(container_strategy).__name__}: pass self in the __init__ of the "
                "strategy, as in super().__init__(MyExtended(self))"
            )
        # Weak: a strategy that nobody holds must go at once, with its threads, not when cycles are collected.
        self._container = weakref.ref(container_strategy)

    def _container_strategy(self) -> Strategy:
        strategy = self._container()
        if strategy is None:
            raise RuntimeError("the strategy that this extended object belongs to is gone: keep the strategy")
        return strategy

    # Hooks

    # The worker group of a strategy of several processes; see `ringlet.strategy.multi_worker.ambient_worker_group`.
    _workers: Any = None

    @property
    def _num_replicas_in_sync(self) -> int:
        """How many replicas take part in a step, over all workers."""
        raise NotImplementedError(f"{type(self).__name__} does not say how many replicas it has")

    @property
    def _num_local_replicas(self) -> int:
        """How many of them belong to this process."""
        return self._num_replicas_in_sync

    def _replicas_of_hosts(self) -> list[int]:
        """How many of those each input pipeline of this process feeds."""
        return [self._num_local_replicas]

    @property
    def _first_replica(self) -> int:
        """Which of all replicas is the first one of this process."""
        return 0

    def _scope(self, strategy: Strategy) -> context.Scope:
        """What ``strategy.scope()`` gives."""
        return StrategyScope(strategy)

    def _local_results(self, value: Any) -> tuple[Any, ...]:
        """What ``strategy.experimental_local_results`` gives."""
        if isinstance(value, DistributedValues):
            return value.values
        if nest.is_nested(value):
            check_components(value, self._num_local_replicas, "experimental_local_results was given")
            return tuple(select_replica(i, value) for i in range(self._num_local_replicas))
        return (value,)
