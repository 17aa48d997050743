"""The base of what strategies do: hooks that a new strategy overrides."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ringlet import context, nest
from ringlet.collectives import ReduceOp
from ringlet.strategy.arguments import check_arguments
from ringlet.strategy.modes import StrategyScope, require_cross_replica
from ringlet.strategy.value_context import ValueContext
from ringlet.values import DistributedValues, regroup, select_replica

if TYPE_CHECKING:
    from ringlet.data import InputContext
    from ringlet.strategy.base import Strategy

__all__ = ["StrategyExtended"]


class StrategyExtended:
    """The lower-level half of a strategy (``tf.distribute.StrategyExtended``), which subclasses implement.

    Parameters
    ----------
    container_strategy : Strategy
        The strategy that this belongs to; not kept alive.

    Examples
    --------
    >>> import ringlet
    >>> class OneAtATime(StrategyExtended):
    ...     _num_replicas_in_sync = 1
    ...     def _call_for_each_replica(self, fn, args, kwargs):
    ...         return fn(*args, **kwargs)
    >>> class OneAtATimeStrategy(ringlet.Strategy):
    ...     def __init__(self):
    ...         super().__init__(OneAtATime(self))
    >>> OneAtATimeStrategy().run(lambda x: x + 1, args=(1,))
    2
    """

    def __init__(self, container_strategy: Strategy) -> None:
        self._bind(container_strategy)

    def _bind(self, container_strategy: Strategy) -> None:
        # Weak: a strategy that nobody holds must go at once, with its threads, not when cycles are collected.
        self._container = weakref.ref(container_strategy)

    def _container_strategy(self) -> Strategy:
        strategy = self._container()
        if strategy is None:
            raise RuntimeError("the strategy that this extended object belongs to is gone: keep the strategy")
        return strategy

    # What programs read

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Full names of the devices that replicas of this process run on, in replica order."""
        raise NotImplementedError(f"{type(self).__name__} does not name its worker_devices")

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Full names of the devices that hold variables."""
        raise NotImplementedError(f"{type(self).__name__} does not name its parameter_devices")

    @property
    def experimental_require_static_shapes(self) -> bool:
        """Whether step functions need arrays of shapes that never change."""
        return False

    @property
    def experimental_between_graph(self) -> bool:
        """Whether every worker runs a program of its own."""
        return False

    @property
    def should_checkpoint(self) -> bool:
        """Whether this process is the one that writes checkpoints."""
        return True

    @property
    def should_save_summary(self) -> bool:
        """Whether this process is the one that writes summaries."""
        return True

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call a function once on each replica; the lower-level form of ``strategy.run``.

        Parameters
        ----------
        fn : callable
        args : sequence
        kwargs : mapping, optional

        Returns
        -------
        nested structure

        Examples
        --------
        >>> import ringlet
        >>> strategy = ringlet.MirroredStrategy(["CPU:0"])
        >>> strategy.extended.call_for_each_replica(lambda: 3)
        3
        """
        check_arguments(args, kwargs)
        require_cross_replica(self._container_strategy())
        return self._call_for_each_replica(fn, args, kwargs or {})

    # Hooks

    @property
    def _num_replicas_in_sync(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not say how many replicas it has")

    def _scope(self, strategy: Strategy) -> context.Scope:
        return StrategyScope(strategy)

    def _call_for_each_replica(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        raise NotImplementedError(f"{type(self).__name__} runs no replicas")

    def _reduce(self, op: ReduceOp, value: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not reduce")

    def _local_results(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, DistributedValues):
            return value.values
        if nest.is_nested(value):
            return tuple(select_replica(i, value) for i in range(self._num_local_replicas))
        return (value,)

    @property
    def _num_local_replicas(self) -> int:
        return self._num_replicas_in_sync

    @property
    def _first_replica(self) -> int:
        """Which of all replicas is the first one of this process."""
        return 0

    def _distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        total, first = self._num_replicas_in_sync, self._first_replica
        values = [value_fn(ValueContext(first + i, total)) for i in range(self._num_local_replicas)]
        return regroup(values, always_wrap=True)

    def _distribute_dataset(self, dataset: Any, options: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not distribute datasets")

    def _distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not distribute datasets")
