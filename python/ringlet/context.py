"""Which strategy is current, and which of its replicas: one stack of modes per thread.

A mode is *cross-replica* inside ``strategy.scope()`` and inside a ``merge_fn``, and a *replica* mode inside
``strategy.run``. An empty stack stands for the default strategy. The stack lives in a context variable, so that asyncio
tasks have stacks of their own; threads start with an empty one (see :func:`wrap`). Strategies are opaque here, so that
values need not know them.
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
        The strategy that is current.
    local_replica_id : int, optional
        Which of the replicas of this process is current; None for cross-replica mode.

    Attributes
    ----------
    below : Mode or None
        The entry below, while this one is on the stack.

    Examples
    --------
    >>> Mode("a strategy").is_cross_replica, Mode("a strategy", 0).is_cross_replica
    (True, False)
    """

    __slots__ = ("below", "local_replica_id", "strategy")

    def __init__(self, strategy: Any, local_replica_id: int | None = None) -> None:
        self.strategy = strategy
        self.local_replica_id = local_replica_id
        self.below: Mode | None = None

    @property
    def is_cross_replica(self) -> bool:
        """Return whether no replica is current."""
        return self.local_replica_id is None

    @property
    def update_replica_id(self) -> int | None:
        """Whose component of a variable is being updated, in cross-replica mode; None outside of updates."""
        return None

    @property
    def is_given_up(self) -> bool:
        """Return whether the run that this replica belongs to has raised while the replica was busy."""
        return False


class UpdateMode(Mode):
    """The entry of the stack while ``strategy.extended.update`` visits one component of a variable.

    Cross-replica, but what is written to the variable goes to that component alone.

    Parameters
    ----------
    strategy : object
        The strategy that is current.
    update_replica_id : int
        Which of the replicas of this process the component belongs to.

    Examples
    --------
    >>> mode = UpdateMode("a strategy", 1)
    >>> mode.is_cross_replica, mode.update_replica_id, Mode("a strategy").update_replica_id
    (True, 1, None)
    """

    __slots__ = ("_update_replica_id",)

    def __init__(self, strategy: Any, update_replica_id: int) -> None:
        super().__init__(strategy)
        self._update_replica_id = update_replica_id

    @property
    def update_replica_id(self) -> int | None:
        """Whose component is being updated."""
        return self._update_replica_id


_CURRENT: ContextVar[Mode | None] = ContextVar("ringlet_mode", default=None)


def current() -> Mode | None:
    """Return the mode on top of this thread's stack.

    Returns
    -------
    Mode or None
        None stands for the default strategy.

    Examples
    --------
    >>> current() is None
    True
    """
    return _CURRENT.get()


def enter(mode: Mode) -> None:
    """Put a mode on the stack for the rest of this ``contextvars`` context.

    For code that runs in a context of its own, where nothing is left to restore; others use :class:`Scope`.

    Parameters
    ----------
    mode : Mode
        Not on any stack.

    Examples
    --------
    >>> import contextvars
    >>> contextvars.copy_context().run(lambda: (enter(Mode("a strategy", 1)), current().local_replica_id)[1])
    1
    >>> current() is None
    True
    """
    mode.below = _CURRENT.get()
    _CURRENT.set(mode)


def call_in(mode: Mode, function: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:
    """Call a function with a mode on top of the stack.

    The call has a ``contextvars`` context of its own, as each replica has: whatever ends it, Ctrl-C at the worst
    moment too, the mode is not current any more. What the function itself sets in context variables ends with it.

    Parameters
    ----------
    mode : Mode
        Not on any stack.
    function : callable
    *args, **kwargs : object

    Returns
    -------
    object
        What the function gave.

    Examples
    --------
    >>> call_in(Mode("a strategy", 1), lambda: current().local_replica_id), current()
    (1, None)
    """
    return copy_context().run(_enter_and_call, mode, function, args, kwargs)


def _enter_and_call(mode: Mode, function: Callable[..., R], args: Any, kwargs: Any) -> R:
    enter(mode)
    return function(*args, **kwargs)


class Scope:
    """A context manager that puts one mode on top of the stack and takes it off.

    For the ``with`` of users; the library itself uses :func:`call_in`. Ctrl-C inside of these methods is made up for,
    but none that comes just before the first instruction of leaving.

    Parameters
    ----------
    mode : Mode
        Not on any stack; ``with`` gives its strategy.

    Raises
    ------
    RuntimeError
        When it is entered twice, or left while another mode is on top.

    Examples
    --------
    >>> with Scope(Mode("a strategy")) as strategy:
    ...     current().strategy is strategy
    True
    """

    __slots__ = ("_is_entered", "mode")

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self._is_entered = False

    def __enter__(self) -> Any:
        if self._is_entered:
            raise RuntimeError(
                f"this scope of {self.mode.strategy!r} is entered already: call strategy.scope() for every `with`"
            )
        self._check()
        below = _CURRENT.get()
        try:
            enter(self.mode)
            self._is_entered = True
        except BaseException:  # Ctrl-C: `with` does not leave what it has not entered
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
        except BaseException:  # Ctrl-C: nobody leaves the scope again
            if _CURRENT.get() is self.mode:
                _CURRENT.set(self.mode.below)
            self._is_entered = False
            raise
        raise RuntimeError(self._why_not_on_top(top))

    def _check(self) -> None:
        """Refuse to be entered here; a hook, because nothing may be called once the scope is entered."""

    def _why_not_on_top(self, top: Mode | None) -> str:
        mine = f"the scope of {self.mode.strategy!r}"
        if not self._is_entered:
            return f"{mine} is not entered: leave it once, with the `with` that entered it"
        if top is None:
            return f"{mine} was entered in another thread or asyncio task than the one that leaves it"
        return (
            f"{mine} is not on top: the scope of {top.strategy!r} is still open. "
            "Leave scopes in the opposite order of entering them; `with` does"
        )


def wrap(function: Callable[P, R]) -> Callable[P, R]:
    """Carry the current mode along to wherever a function will be called.

    Threads of an executor start with an empty stack; a wrapped function sees the strategy and the replica that were
    current where it was wrapped.

    Parameters
    ----------
    function : callable

    Returns
    -------
    callable
        Takes and gives what `function` does. One replica must not be driven by two threads at a time.

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
