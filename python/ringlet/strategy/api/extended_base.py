"""ExtendedBase: the base class of the mixins of ``strategy.extended``."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ringlet import context, nest
from ringlet.strategy.calls.context_checks import StrategyScope
from ringlet.strategy.calls.plain_names import PlainNames
from ringlet.values import DistributedValues, check_components, select_replica

if TYPE_CHECKING:
    from ringlet.strategy.api.strategy import Strategy


class ExtendedBase(PlainNames):
    """Base class with a reference to the strategy, and the numbers of its replicas.

    Parameters
    ----------
    container_strategy : Strategy
        The strategy that this object belongs to; not kept alive.
    """

    def __init__(self, container_strategy: Strategy) -> None:
        self._bind(container_strategy)

    def _bind(self, container_strategy: Strategy) -> None:
        if not hasattr(type(container_strategy), "extended"):
            raise TypeError(
                "container_strategy must be the strategy that this extended object belongs to, got "
                f"{container_strategy!r} of type {type(container_strategy).__name__}: pass self in the __init__ of the "
                "strategy, as in super().__init__(MyExtended(self))"
            )
        # Weak: an unreferenced strategy must be freed at once with its threads, not only when cycles are collected.
        self._container = weakref.ref(container_strategy)

    def _container_strategy(self) -> Strategy:
        strategy = self._container()
        if strategy is None:
            raise RuntimeError("the strategy of this extended object was deleted: keep a reference to the strategy")
        return strategy

    # --- hooks --------------------------------------------------------------------------------------------------------

    # The worker group of a strategy of several processes; see `ringlet.strategy.multi_worker.ambient_worker_group`.
    _workers: Any = None

    @property
    def _num_replicas_in_sync(self) -> int:
        """The number of replicas in a step, over all workers."""
        raise NotImplementedError(f"{type(self).__name__} must define _num_replicas_in_sync, the number of replicas")

    @property
    def _num_local_replicas(self) -> int:
        return self._num_replicas_in_sync

    def _replicas_of_hosts(self) -> list[int]:
        """Return the number of replicas that each input pipeline of this process feeds."""
        return [self._num_local_replicas]

    @property
    def _first_replica(self) -> int:
        """The index of this process's first replica among all replicas."""
        return 0

    def _scope(self, strategy: Strategy) -> context.Scope:
        """Implement ``strategy.scope()``."""
        return StrategyScope(strategy)

    def _local_results(self, value: Any) -> tuple[Any, ...]:
        """Implement ``strategy.experimental_local_results``."""
        if isinstance(value, DistributedValues):
            return value.values
        if nest.is_nested(value):
            check_components(value, self._num_local_replicas, "experimental_local_results was given")
            return tuple(select_replica(i, value) for i in range(self._num_local_replicas))
        return (value,)
