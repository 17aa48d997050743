"""The mode of each thread: its current strategy and, inside a step, its current replica.

Modes form a stack. A mode is a *cross-replica* mode inside ``strategy.scope()`` and ``merge_fn``, and a *replica* mode
inside ``strategy.run``. An empty stack means the default strategy. The stack is in a context variable, so each asyncio
task has its own stack, and threads start with an empty stack (see :func:`wrap`). This module uses no attributes of
strategies, so that the layer of values does not depend on the layer of strategies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

__all__ = ["Mode", "Scope", "UpdateMode", "call_in", "current", "enter", "wrap"]

P = ParamSpec("P")
R = TypeVar("R")


class Mode:
    """One entry of the stack: a strategy and, inside ``run``, one of its replicas.

    Parameters
    ----------
    strategy : object
        The current strategy.
    local_replica_id : int, optional
        Index of the current replica among the replicas of this process; None for cross-replica mode.

    Attributes
    ----------
    below : Mode or None
        The entry below, while this entry is on the stack.

    Examples
    --------
    >>> Mode("a strategy").is_cross_replica, Mode("a strategy", 0).is_cross_replica
    (True, False)
    """

    __slots__ = ("below", "local_replica_id", "strategy")

    def __init__(self, strategy: Any, local_replica_id: int | None = None) -> None:
        self.strategy: Any = strategy
        self.local_replica_id: int | None = local_replica_id
        self.below: Mode | None = None

    @property
    def is_cross_replica(self) -> bool:
        """True if no replica is current."""
        return self.local_replica_id is None

    @property
    def update_replica_id(self) -> int | None:
        """The replica whose component of a variable is being updated, in cross-replica mode; else None."""
        return None

    @property
    def is_abandoned(self) -> bool:
        """True if ``strategy.run`` has raised an error and this replica is still running."""
        return False


class UpdateMode(Mode):
    """The entry of the stack while ``strategy.extended.update`` updates one component of a variable.

    A cross-replica mode, in which assignments to the variable change only the component with the index
    `update_replica_id` in this process.
    """

    __slots__ = ("_update_replica_id",)

    def __init__(self, strategy: Any, update_replica_id: int) -> None:
        super().__init__(strategy)
        self._update_replica_id = update_replica_id

    @property
    def update_replica_id(self) -> int | None:
        """The replica whose component is being updated."""
        return self._update_replica_id


_CURRENT: ContextVar[Mode | None] = ContextVar("ringlet_mode", default=None)


def current() -> Mode | None:
    """Return the mode on top of this thread's stack, or None if the default strategy is current."""
    return _CURRENT.get()


def enter(mode: Mode) -> None:
    """Push a mode on the stack for the rest of this ``contextvars`` context.

    For code that runs in its own context, where the stack need not be restored; otherwise use :class:`Scope`.
    """
    mode.below = _CURRENT.get()
    _CURRENT.set(mode)


def call_in(mode: Mode, function: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:
    """Call a function with a mode on top of the stack.

    The call has its own ``contextvars`` context, as each replica does. When the call ends, even if Ctrl-C interrupts
    it at any instruction, the previous mode and the previous values of context variables are current again.
    """
    return copy_context().run(_enter_and_call, mode, function, args, kwargs)


def _enter_and_call(mode: Mode, function: Callable[..., R], args: Any, kwargs: Any) -> R:
    enter(mode)
    return function(*args, **kwargs)


class Scope:
    """A context manager that pushes a mode on the stack and pops it.

    For ``with`` statements of programs; the library itself uses :func:`call_in`. The stack is restored if Ctrl-C
    interrupts ``__enter__`` or ``__exit__``, except just before the first instruction of ``__exit__``.
    """

    __slots__ = ("_is_entered", "mode")

    def __init__(self, mode: Mode) -> None:
        self.mode: Mode = mode
        self._is_entered = False

    def __enter__(self) -> Any:
        if self._is_entered:
            raise RuntimeError(
                f"this scope of {self.mode.strategy!r} is already entered: call strategy.scope() for every `with`"
            )
        self._check()
        below = _CURRENT.get()
        try:
            enter(self.mode)
            self._is_entered = True
        except BaseException:  # after Ctrl-C here, `with` does not call __exit__
            _CURRENT.set(below)
            self._is_entered = False
            raise
        return self.mode.strategy

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            top = _CURRENT.get()
            if self._is_entered and top is self.mode:
                _CURRENT.set(self.mode.below)
                self._is_entered = False
                return
        except BaseException:  # after Ctrl-C here, __exit__ is not called again
            if _CURRENT.get() is self.mode:
                _CURRENT.set(self.mode.below)
            self._is_entered = False
            raise
        raise RuntimeError(self._why_not_on_top(top))

    def _check(self) -> None:
        """Raise an error if the scope cannot be entered; subclasses override this method.

        Called before the scope is entered: Ctrl-C during a later check would leave the scope entered.
        """

    def _why_not_on_top(self, top: Mode | None) -> str:
        mine = f"the scope of {self.mode.strategy!r}"
        if not self._is_entered:
            return f"{mine} is not entered: leave it once, in the `with` statement that entered it"
        if top is None:
            return f"{mine} was entered in another thread or asyncio task than the one leaving it"
        return (
            f"{mine} is not on top: the scope of {top.strategy!r} is still open. "
            "Leave scopes in the reverse order of entering, as `with` does"
        )


def wrap(function: Callable[P, R]) -> Callable[P, R]:
    """Bind a function to the current mode, for calls in other threads.

    Threads of an executor start with an empty stack; a wrapped function runs with the strategy and the replica that
    were current when it was wrapped.

    Parameters
    ----------
    function : callable

    Returns
    -------
    callable
        With the signature of `function`. A replica must not be used by two threads at a time.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor() as pool, Scope(Mode("a strategy")):
    ...     bare = pool.submit(current).result()
    ...     carried = pool.submit(wrap(current)).result()
    >>> bare is None, carried.strategy
    (True, 'a strategy')
    """
    mode = _CURRENT.get()

    @functools.wraps(function)
    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        token = _CURRENT.set(mode)
        try:
            return function(*args, **kwargs)
        finally:
            _CURRENT.reset(token)

    return carried
