"""Which strategy and which replica is current in this thread."""

from __future__ import annotations

from contextvars import ContextVar

from ringlet import context
from ringlet.strategy.api.default_strategy import default_replica_context, default_strategy
from ringlet.strategy.api.strategy import Strategy
from ringlet.strategy.replica.replica_context import ReplicaContext

__all__ = [
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]

_set_scope: ContextVar[context.Scope | None] = ContextVar("ringlet_set_strategy", default=None)


def get_strategy() -> Strategy:
    """Give the current strategy of this thread.

    Returns
    -------
    Strategy
        Outside of every scope the default strategy, never None.

    Examples
    --------
    >>> import ringlet
    >>> strategy = ringlet.MirroredStrategy(["CPU:0"])
    >>> with strategy.scope():
    ...     get_strategy() is strategy
    True
    """
    mode = context.current()
    if mode is None:
        return default_strategy()
    strategy: Strategy = mode.strategy
    return strategy


def has_strategy() -> bool:
    """Tell whether another strategy than the default one is current.

    Returns
    -------
    bool
        True inside of a scope, of ``run`` and of a ``merge_fn``.

    Examples
    --------
    >>> has_strategy()
    False
    """
    return get_strategy() is not default_strategy()


def get_replica_context() -> ReplicaContext | None:
    """Give the current replica.

    Returns
    -------
    ReplicaContext or None
        None in cross-replica context, that is in a scope and in a ``merge_fn``; outside of every scope the one replica
        of the default strategy.

    Examples
    --------
    >>> get_replica_context().num_replicas_in_sync
    1
    """
    mode = context.current()
    if mode is None:
        return default_replica_context()
    return mode if isinstance(mode, ReplicaContext) else None


def in_cross_replica_context() -> bool:
    """Tell whether a strategy is current and none of its replicas is.

    Returns
    -------
    bool
        True in a scope and in a ``merge_fn``; False inside of ``run``, and outside of every scope.

    Examples
    --------
    >>> import ringlet
    >>> with ringlet.MirroredStrategy(["CPU:0"]).scope():
    ...     in_cross_replica_context()
    True
    """
    mode = context.current()
    return mode is not None and mode.is_cross_replica


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Make a strategy current in this thread without a ``with``.

    Parameters
    ----------
    strategy : Strategy or None
        Takes the place of one that was set this way before; None ends it.

    Raises
    ------
    TypeError
        If it is anything else.
    RuntimeError
        Inside of a scope.

    Examples
    --------
    >>> import ringlet
    >>> strategy = ringlet.MirroredStrategy(["CPU:0"])
    >>> experimental_set_strategy(strategy)
    >>> get_strategy() is strategy
    True
    >>> experimental_set_strategy(None)
    >>> has_strategy()
    False
    """
    if strategy is not None and not isinstance(strategy, Strategy):
        raise TypeError(
            f"strategy is a ringlet.Strategy or None, got {strategy!r} of type {type(strategy).__name__}: make one, "
            "such as ringlet.MirroredStrategy()"
        )
    mode, scope = context.current(), _set_scope.get()
    if mode is not None and (scope is None or scope.mode is not mode):
        raise RuntimeError(
            f"Must not be called inside a strategy scope: that of {mode.strategy!r} is open. Leave it first"
        )
    if scope is not None:
        scope.__exit__(None, None, None)
        _set_scope.set(None)
    if strategy is not None:
        scope = strategy.scope()
        scope.__enter__()
        _set_scope.set(scope)
