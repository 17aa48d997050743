"""The default strategy, current outside of all scopes: one replica, which is the program itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

from ringlet import context
from ringlet.strategy.api.extended import SingleReplicaExtended
from ringlet.strategy.api.strategy import Strategy
from ringlet.strategy.calls.context_checks import StrategyScope, require_cross_replica, require_replica
from ringlet.strategy.replica.replica_context import ReplicaContext
from ringlet.values import split_arguments

if TYPE_CHECKING:
    from ringlet.data import InputContext


class DefaultStrategy(Strategy):
    """One replica without distribution: calls are passed through. See :func:`default_strategy` for the instance."""

    def __init__(self) -> None:
        if _strategies:
            raise RuntimeError("Should only create a single instance of the default strategy: use get_strategy()")
        super().__init__(_DefaultExtended(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Strategy:
        raise RuntimeError(
            "Should only create a single instance of the default strategy: use get_strategy() instead of a copy"
        )

    def _repr_html_(self) -> str:
        from ringlet.values.notebook_repr import facts_table

        return facts_table("default strategy", {"replicas in sync": 1})

    def __repr__(self) -> str:
        return "<default strategy>"


class _DefaultScope(StrategyScope):
    """A scope without effect, because the default strategy is already current outside of other scopes."""

    __slots__ = ()

    def __enter__(self) -> Any:
        mode = context.current()
        if mode is not None and mode.strategy is not self.mode.strategy:
            raise RuntimeError(
                f"Must not nest strategy scopes: {mode.strategy!r} is current, and the scope of the default strategy "
                "does not replace it. Leave the current scope instead"
            )
        return self.mode.strategy

    def __exit__(self, *_: object) -> None:
        return


class _DefaultExtended(SingleReplicaExtended):
    @property
    def worker_devices(self) -> tuple[str, ...]:
        raise RuntimeError("worker_devices is unsupported by the default strategy: enter a strategy's scope first")

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        raise RuntimeError("parameter_devices is unsupported by the default strategy: enter a strategy's scope first")

    def _scope(self, strategy: Strategy) -> context.Scope:
        return _DefaultScope(strategy)

    def _call_for_each_replica(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        rows, keywords = split_arguments(args, kwargs, 1)
        return fn(*rows[0], **keywords[0])

    def _check_updated(self, var: Any) -> None:
        """Accept every variable: outside of all strategies, every variable may be updated."""

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """Return a context manager without effect; not available in the scope of another strategy."""
        require_cross_replica(self._container_strategy())
        return nullcontext()

    def variable_created_in_scope(self, v: Any) -> bool:
        """Return whether a variable was created outside of every scope."""
        return getattr(v, "distribute_strategy", self) in (None, self._container_strategy())

    def _distribute_dataset(self, dataset: Any, options: Any, uneven: Literal["keep"] | None = None) -> Any:
        return dataset if uneven is None else super()._distribute_dataset(dataset, options, uneven)

    def _distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any) -> Any:
        from ringlet.data import InputContext

        return dataset_fn(InputContext())


class DefaultReplicaContext(ReplicaContext):
    """The replica context of a program outside of every strategy."""

    __slots__ = ()

    @property
    def replica_id_in_sync_group(self) -> int:
        """Index of the only replica: 0, a plain int as in TensorFlow."""
        return 0

    def _require_current(self) -> None:
        if context.current() is not None:
            require_replica(self)


_strategies: list[DefaultStrategy] = []
_strategies.append(DefaultStrategy())
_replica = DefaultReplicaContext(_strategies[0], 0)


def default_strategy() -> DefaultStrategy:
    """Return the default strategy, always the same object."""
    return _strategies[0]


def default_replica_context() -> DefaultReplicaContext:
    """Return the replica context of the default strategy, always the same object."""
    return _replica
