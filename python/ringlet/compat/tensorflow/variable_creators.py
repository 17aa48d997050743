"""``tf.variable_creator_scope``: functions that observe, change or replace the creation of variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ringlet import context

Creator = Callable[..., Any]

# Each creator, and whether it is called once for all replicas. The last creator is called first.
_creators: ContextVar[tuple[tuple[Creator, bool], ...]] = ContextVar("ringlet_variable_creators", default=())


@contextmanager
def variable_creator_scope(variable_creator: Creator) -> Iterator[None]:
    """Call a function for every ``tf.Variable(...)`` that is created in a ``with`` block.

    In nested scopes, the innermost creator is called first, and its `next_creator` is the creator of the enclosing
    scope. The last `next_creator` creates the variable with the current strategy. A creator entered outside of a step
    is called once for all replicas; a creator entered by a replica is called by that replica. Threads that the program
    starts do not inherit creators.

    Parameters
    ----------
    variable_creator : callable
        Takes `next_creator` and the arguments of ``tf.Variable`` by name. Its result is the result of ``tf.Variable``.

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> def renamed(next_creator, **kwargs):
    ...     return next_creator(**{**kwargs, "name": "model/" + kwargs["name"]})
    >>> with tf.variable_creator_scope(renamed):
    ...     v = tf.Variable(1.0, name="rate")
    >>> v.name
    'model/rate:0'
    """
    mode = context.current()
    is_shared = mode is None or mode.is_cross_replica
    token = _creators.set((*_creators.get(), (variable_creator, is_shared)))
    try:
        yield
    finally:
        _creators.reset(token)


def create_through_scopes(create: Creator, describe: Callable[..., str], arguments: dict[str, Any]) -> Any:
    """Create a variable: call the creators of all scopes, the last of which calls `create`.

    `create` and `describe` take `arguments` by name; `describe` returns text that must be equal on all replicas.
    """
    creators = _creators.get()
    mode: Any = context.current()
    if mode is None or mode.is_cross_replica:
        return _chain([creator for creator, _ in creators], create)(**arguments)
    shared, own = ([creator for creator, is_shared in creators if is_shared is wanted] for wanted in (True, False))

    def create_together(**given: Any) -> Any:
        return mode._merge_named(describe(**given), lambda _: _chain(shared, create)(**given))

    return _chain(own, create_together if shared else create)(**arguments)


def _chain(creators: Sequence[Creator], create: Creator) -> Creator:
    for creator in creators:
        create = _calling(creator, create)
    return create


def _calling(creator: Creator, next_creator: Creator) -> Creator:
    return lambda **arguments: creator(next_creator, **arguments)
