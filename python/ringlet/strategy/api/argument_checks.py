"""What may be given as arguments and options of calls: checked once, in the user's words."""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType
from typing import Any

__all__ = ["check_arguments", "check_function", "check_input_options", "refuse_per_replica"]

# CO_COROUTINE and CO_ASYNC_GENERATOR of the module inspect.
_IS_ASYNC = 0x80 | 0x200


def check_arguments(args: Any, kwargs: Any) -> None:
    """Refuse what are no positional or no keyword arguments.

    Parameters
    ----------
    args : list or tuple
    kwargs : mapping or None

    Raises
    ------
    ValueError
        If `args` is neither a list nor a tuple.
    TypeError
        If `kwargs` is no mapping.

    Examples
    --------
    >>> check_arguments((1, 2), {"x": 3})
    >>> check_arguments(5, None)
    Traceback (most recent call last):
        ...
    ValueError: positional args must be a list or tuple, got 5 of type <class 'int'>: write args=(value,)
    """
    if not isinstance(args, (list, tuple)):
        raise ValueError(
            f"positional args must be a list or tuple, got {args!r} of type {type(args)}: write args=(value,)"
        )
    if kwargs is not None and type(kwargs) is not dict and not isinstance(kwargs, Mapping):
        raise TypeError(
            f"kwargs must be a mapping of names to values or None, got {kwargs!r} of type {type(kwargs)}: write "
            "kwargs={'name': value}, or give positional arguments as args"
        )


def check_function(fn: Any) -> None:
    """Refuse a step function that would give replicas a coroutine, which nobody awaits.

    Parameters
    ----------
    fn : callable

    Raises
    ------
    TypeError
        If it is an ``async def``.

    Examples
    --------
    >>> check_function(abs)
    """
    code = getattr(fn, "__code__", None)
    if code is None:  # an object, such as a partial
        code = getattr(getattr(fn, "func", None) or _method(fn, "__call__"), "__code__", None)
    if isinstance(code, CodeType) and code.co_flags & _IS_ASYNC:
        raise TypeError(
            f"{fn!r} is an async function: its replicas would give coroutines, and nothing would run. Write a step "
            "function with def; it may call asyncio.run(...)"
        )


def _method(instance: Any, name: str) -> Any:
    return getattr(type(instance), name, None)


def check_input_options(options: Any) -> None:
    """Refuse what are no options of a distributed dataset.

    Parameters
    ----------
    options : ringlet.data.InputOptions or None

    Raises
    ------
    TypeError
        If they are anything else.

    Examples
    --------
    >>> check_input_options(None)
    >>> check_input_options(5)
    Traceback (most recent call last):
        ...
    TypeError: options are a ringlet.data.InputOptions or None, got 5 of type int: write options=InputOptions(...)
    """
    if options is None:
        return
    from ringlet.data import InputOptions  # loaded where datasets are used

    if not isinstance(options, InputOptions):
        raise TypeError(
            f"options are a ringlet.data.InputOptions or None, got {options!r} of type {type(options).__name__}: write "
            "options=InputOptions(...)"
        )


def refuse_per_replica(extended: Any, options: Any) -> None:
    """Refuse a dataset for each replica where a strategy has one for all of them.

    Parameters
    ----------
    extended : StrategyExtended
        Named in the message.
    options : ringlet.data.InputOptions or None

    Raises
    ------
    NotImplementedError
        If the options ask for PER_REPLICA.

    Examples
    --------
    >>> refuse_per_replica(None, None)
    """
    if options is not None and options.experimental_replication_mode.name == "PER_REPLICA":
        raise NotImplementedError(
            "InputReplicationMode.PER_REPLICA is only supported in distribute_datasets_from_function of "
            f"MirroredStrategy, not of {extended._container_strategy()!r}. Use PER_WORKER: its batches are dealt to "
            "the replicas in turn"
        )
