"""The current strategy and the current replica of this thread."""

from __future__ import annotations

from contextvars import ContextVar

from ringlet import context
from ringlet.collectives.argument_parsing import shortened
from ringlet.strategy.api.default_strategy import default_replica_context, default_strategy
from ringlet.strategy.api.strategy import Strategy
from ringlet.strategy.replica.replica_context import ReplicaContext

_set_scope: ContextVar[context.Scope | None] = ContextVar("ringlet_set_strategy", default=None)


def get_strategy() -> Strategy:
    """Return the current strategy of this thread.

    Returns
    -------
    Strategy
        Outside of every scope, the default strategy; never None.

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
    """Return whether a strategy other than the default strategy is current.

    Returns
    -------
    bool
        True inside a scope, ``run`` and a ``merge_fn``.

    Examples
    --------
    >>> has_strategy()
    False
    """
    return get_strategy() is not default_strategy()


def get_replica_context() -> ReplicaContext | None:
    """Return the context of the current replica.

    Returns
    -------
    ReplicaContext or None
        None in cross-replica context, that is, inside a scope or a ``merge_fn``. Outside of every scope, the context
        of the default strategy's replica.

    Examples
    --------
    >>> get_replica_context().num_replicas_in_sync
    1
    """
    mode = context.current()
    if mode is None:
        return default_replica_context()
    return mode if isinstance(mode, ReplicaContext) else None


def replica_context() -> ReplicaContext:
    """Return the context of the current replica, as :func:`get_replica_context` does, but never None.

    Returns
    -------
    ReplicaContext
        Outside of every scope, the context of the default strategy's replica.

    Raises
    ------
    RuntimeError
        In cross-replica context.

    Examples
    --------
    >>> import ringlet
    >>> strategy = ringlet.MirroredStrategy(2)
    >>> strategy.run(lambda: ringlet.replica_context().all_reduce("SUM", 1)).values
    (array(2), array(2))
    """
    replica = get_replica_context()
    if replica is None:
        raise RuntimeError(
            f"replica_context() was called in cross-replica context of {get_strategy()!r}, in its scope or in a "
            "merge_fn. Call it in the function that strategy.run(fn) runs"
        )
    return replica


def in_cross_replica_context() -> bool:
    """Return whether this thread is in cross-replica context: a strategy is current, but no replica is.

    Returns
    -------
    bool
        True in a scope and in a ``merge_fn``; False inside ``run``, and outside of every scope.

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
    """Make a strategy current in this thread without a ``with`` statement.

    Parameters
    ----------
    strategy : Strategy or None
        Replaces the strategy set by an earlier call; None restores the default strategy.

    Raises
    ------
    TypeError
        If `strategy` is not a Strategy or None.
    RuntimeError
        If called inside a scope or a replica.

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
            f"strategy must be a ringlet.Strategy or None, got {shortened(strategy)} of type "
            f"{type(strategy).__name__}: create one, such as ringlet.MirroredStrategy()"
        )
    mode, scope = context.current(), _set_scope.get()
    if mode is not None and (scope is None or scope.mode is not mode):
        raise RuntimeError(
            f"Must not be called inside a strategy scope: the scope of {mode.strategy!r} is open. Leave that scope "
            "first"
        )
    if scope is not None:
        scope.__exit__(None, None, None)
        _set_scope.set(None)
    if strategy is not None:
        scope = strategy.scope()
        scope.__enter__()
        _set_scope.set(scope)


set_strategy = experimental_set_strategy
