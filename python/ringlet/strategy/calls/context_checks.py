"""Checks of the context in which a call is made, and the scope of a strategy."""

from __future__ import annotations

from typing import Any, NoReturn

from ringlet import context

_REMEDY = "Call get_replica_context() inside the function that strategy.run calls, in every step"


def require_cross_replica(
    strategy: Any, method: str = "this method", instead: str = "get_replica_context().merge_call()"
) -> None:
    """Raise RuntimeError for a cross-replica call inside a replica, or inside the scope of another strategy.

    The message proposes `instead`, which replicas can call together.
    """
    mode = context.current()
    if mode is None or (mode.strategy is strategy and mode.local_replica_id is None):
        return
    if mode.strategy is not strategy:
        raise RuntimeError(
            f"Mixing different strategies: {mode.strategy!r} is current, but {strategy!r} was called. Leave the scope "
            "of the current strategy first"
        )
    raise RuntimeError(
        f"{method} of {strategy!r} requires cross-replica context, but was called by a replica, inside strategy.run. "
        f"Call it outside of run, or for all replicas together with {instead}"
    )


def require_replica(replica: context.Mode) -> None:
    """Raise RuntimeError unless `replica` is the current replica context."""
    mode = context.current()
    if mode is replica:
        return
    if mode is None or mode.strategy is not replica.strategy:
        current = "the default strategy" if mode is None else repr(mode.strategy)
        raise RuntimeError(
            f"Mismatching strategies: {current} is current, but this replica context belongs to {replica.strategy!r}. "
            f"{_REMEDY}"
        )
    if mode.is_cross_replica:
        raise RuntimeError(f"a replica context was used in cross-replica context, outside of its replica. {_REMEDY}")
    refuse_stale()


def refuse_stale() -> NoReturn:
    """Raise RuntimeError for a call on a replica context that is no longer current."""
    raise RuntimeError(
        f"Mismatching ReplicaContext: it belongs to another replica, or to a run that has ended. {_REMEDY}"
    )


class StrategyScope(context.Scope):
    """The context manager of ``strategy.scope()``: makes a strategy current, in cross-replica mode."""

    __slots__ = ()

    def __init__(self, strategy: Any) -> None:
        super().__init__(context.Mode(strategy))

    def _check(self) -> None:
        require_cross_replica(self.mode.strategy)
