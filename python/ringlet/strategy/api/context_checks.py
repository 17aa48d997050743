"""Rules about which mode a call needs, and the context manager behind ``strategy.scope()``."""

from __future__ import annotations

from typing import Any, NoReturn

from ringlet import context

__all__ = ["StrategyScope", "refuse_stale", "require_cross_replica", "require_replica"]

_REMEDY = "Call get_replica_context() inside the function that strategy.run calls, in every step"


def require_cross_replica(
    strategy: Any, method: str = "this method", instead: str = "get_replica_context().merge_call()"
) -> None:
    """Refuse a call that belongs outside of replicas.

    Parameters
    ----------
    strategy : Strategy
        The strategy whose method was called.
    method : str
        What messages call it.
    instead : str
        What replicas call together.

    Raises
    ------
    RuntimeError
        Inside a replica, or inside the scope of another strategy.

    Examples
    --------
    >>> require_cross_replica("any strategy")
    """
    mode = context.current()
    if mode is None or (mode.strategy is strategy and mode.local_replica_id is None):
        return
    if mode.strategy is not strategy:
        raise RuntimeError(
            f"Mixing different strategies: {mode.strategy!r} is current and is not {strategy!r}, which was called. "
            "Leave the scope of the first before using the second"
        )
    raise RuntimeError(
        f"{method} of {strategy!r} requires cross-replica context, but a replica called it, inside of strategy.run. "
        f"Call it outside, or for all replicas together with {instead}"
    )


def require_replica(replica: context.Mode) -> None:
    """Refuse a call on a replica context that is not the current one.

    Parameters
    ----------
    replica : ReplicaContext
        The context whose method was called.

    Raises
    ------
    RuntimeError
        If another replica is current, or none.

    Examples
    --------
    >>> from ringlet.strategy import MirroredStrategy, get_replica_context
    >>> MirroredStrategy(["CPU:0"]).run(lambda: require_replica(get_replica_context()))
    """
    mode = context.current()
    if mode is replica:
        return
    if mode is None or mode.strategy is not replica.strategy:
        current = "the default strategy" if mode is None else repr(mode.strategy)
        raise RuntimeError(
            f"Mismatching strategies: {current} is current and is not {replica.strategy!r}, to which this replica "
            f"context belongs. {_REMEDY}"
        )
    if mode.is_cross_replica:
        raise RuntimeError(f"a replica context was used in cross-replica context, outside of its replica. {_REMEDY}")
    refuse_stale()


def refuse_stale() -> NoReturn:
    """Refuse a call on a replica context that is not the current one any more.

    Raises
    ------
    RuntimeError
        Always.

    Examples
    --------
    >>> refuse_stale()
    Traceback (most recent call last):
        ...
    RuntimeError: Mismatching ReplicaContext: it belongs to another replica, or to a run that is over. ...
    """
    raise RuntimeError(
        f"Mismatching ReplicaContext: it belongs to another replica, or to a run that is over. {_REMEDY}"
    )


class StrategyScope(context.Scope):
    """What ``strategy.scope()`` gives: makes a strategy current, in cross-replica mode.

    Parameters
    ----------
    strategy : Strategy
        May be current already; another one may not.

    Examples
    --------
    >>> with StrategyScope("any strategy"):
    ...     context.current().is_cross_replica
    True
    """

    __slots__ = ()

    def __init__(self, strategy: Any) -> None:
        super().__init__(context.Mode(strategy))

    def _check(self) -> None:
        require_cross_replica(self.mode.strategy)
