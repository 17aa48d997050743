"""The strategy that is current where no other one is: one replica, which is the program itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

from ringlet import context
from ringlet.collectives import CommunicationOptions, ReduceOp
from ringlet.strategy.api.context_checks import StrategyScope, require_cross_replica, require_replica
from ringlet.strategy.api.extended import StrategyExtended
from ringlet.strategy.api.gather_semantics import gather_alone
from ringlet.strategy.api.reduce_semantics import reduce_components
from ringlet.strategy.api.strategy import Strategy
from ringlet.strategy.api.value_context import ValueContext
from ringlet.strategy.replica.replica_context import ReplicaContext
from ringlet.values import DistributedValues, split_arguments

if TYPE_CHECKING:
    from ringlet.data import InputContext

__all__ = ["DefaultReplicaContext", "DefaultStrategy", "default_replica_context", "default_strategy"]


class DefaultStrategy(Strategy):
    """One replica, no distribution: calls go straight through. There is a single one, see :func:`default_strategy`.

    Raises
    ------
    RuntimeError
        If one exists already.

    Examples
    --------
    >>> default_strategy().run(lambda x: x + 1, args=(2,))
    3
    """

    def __init__(self) -> None:
        if _strategies:
            raise RuntimeError("Should only create a single instance of the default strategy: use get_strategy()")
        super().__init__(_DefaultExtended(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Strategy:
        raise RuntimeError("Should only create a single instance of the default strategy: it cannot be copied")

    def __repr__(self) -> str:
        return "<default strategy>"


class _DefaultScope(StrategyScope):
    """Changes nothing: where no strategy is current the default one is."""

    __slots__ = ()

    def __enter__(self) -> Any:
        mode = context.current()
        if mode is not None and mode.strategy is not self.mode.strategy:
            raise RuntimeError(
                f"Must not nest strategy scopes: {mode.strategy!r} is current, which the default strategy's scope "
                "would not end. Leave that scope instead"
            )
        return self.mode.strategy

    def __exit__(self, *_: object) -> None:
        return


class _DefaultExtended(StrategyExtended):
    @property
    def worker_devices(self) -> tuple[str, ...]:
        raise RuntimeError("worker_devices is unsupported by the default strategy: enter a strategy's scope first")

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        raise RuntimeError("parameter_devices is unsupported by the default strategy: enter a strategy's scope first")

    @property
    def _num_replicas_in_sync(self) -> int:
        return 1

    def _scope(self, strategy: Strategy) -> context.Scope:
        return _DefaultScope(strategy)

    def _call_for_each_replica(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        rows, keywords = split_arguments(args, kwargs, 1)
        return fn(*rows[0], **keywords[0])

    def _reduce(self, op: ReduceOp, value: Any) -> Any:
        return reduce_components(op, value, 1) if isinstance(value, DistributedValues) else value

    def _reduce_to(self, op: ReduceOp, value: Any, destinations: Any, options: CommunicationOptions | None) -> Any:
        return self._reduce(op, value)

    def _gather(self, value: Any, axis: int) -> Any:
        return gather_alone(value)

    def _check_updated(self, var: Any) -> None:
        """Nothing is refused: outside of all strategies every variable may be changed."""

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """Give a context manager that changes nothing; outside of the scopes of other strategies."""
        require_cross_replica(self._container_strategy())
        return nullcontext()

    def variable_created_in_scope(self, v: Any) -> bool:
        """Tell whether a variable was made outside of every scope."""
        return getattr(v, "distribute_strategy", self) in (None, self._container_strategy())

    def _local_results(self, value: Any) -> tuple[Any, ...]:
        return (value,)

    def _distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        return value_fn(ValueContext())

    def _distribute_dataset(self, dataset: Any, options: Any, uneven: Literal["keep"] | None = None) -> Any:
        if uneven is None:
            return dataset
        from ringlet.data.distribution.distribute import distribute_dataset  # loaded where datasets are used

        return distribute_dataset(dataset, 1, options, uneven=uneven)

    def _distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any) -> Any:
        from ringlet.data import InputContext  # loaded where datasets are used

        return dataset_fn(InputContext())


class DefaultReplicaContext(ReplicaContext):
    """The replica that a program is outside of every strategy.

    Examples
    --------
    >>> default_replica_context().num_replicas_in_sync
    1
    """

    __slots__ = ()

    @property
    def replica_id_in_sync_group(self) -> int:
        """Zero, a plain int here as in TensorFlow."""
        return 0

    def _require_current(self) -> None:
        if context.current() is not None:
            require_replica(self)


_strategies: list[DefaultStrategy] = []
_strategies.append(DefaultStrategy())
_replica = DefaultReplicaContext(_strategies[0], 0)


def default_strategy() -> DefaultStrategy:
    """Give the default strategy.

    Returns
    -------
    DefaultStrategy
        Always the same object.

    Examples
    --------
    >>> default_strategy()
    <default strategy>
    """
    return _strategies[0]


def default_replica_context() -> DefaultReplicaContext:
    """Give the replica context of the default strategy.

    Returns
    -------
    DefaultReplicaContext
        Always the same object.

    Examples
    --------
    >>> default_replica_context().replica_id_in_sync_group
    0
    """
    return _replica
