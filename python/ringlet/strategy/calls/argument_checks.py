"""Checks of the arguments and options of strategy calls."""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType
from typing import Any

from ringlet.collectives.argument_parsing import shortened

# inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_IS_ASYNC = 0x80 | 0x200


def check_arguments(args: Any, kwargs: Any) -> None:
    """Raise an error unless `args` is a list or tuple (ValueError) and `kwargs` a mapping or None (TypeError)."""
    if not isinstance(args, (list, tuple)):
        remedy = "(value,)" if kwargs is None or isinstance(kwargs, Mapping) else "(first, second)"
        raise ValueError(
            f"positional args must be a list or tuple, got {shortened(args)} of type {type(args)}: write args={remedy}"
        )
    if kwargs is not None and type(kwargs) is not dict and not isinstance(kwargs, Mapping):
        raise TypeError(
            f"kwargs must be a mapping of names to values or None, got {shortened(kwargs)} of type "
            f"{type(kwargs)}: write "
            "kwargs={'name': value}, or pass positional arguments as args"
        )


def check_function(fn: Any) -> None:
    """Raise TypeError unless a step function is callable and not ``async``: coroutines would not be awaited."""
    if not callable(fn):
        raise TypeError(
            f"{type(fn).__name__!r} object is not callable: run calls a function, got {fn!r}. Write "
            "strategy.run(step, args=(x,)), without calling the function"
        )
    code = getattr(fn, "__code__", None)
    if code is None:  # `fn` is not a Python function but, for example, a partial, such as a partial
        call = getattr(fn, "func", None) or getattr(type(fn), "__call__", None)  # noqa: B004  # may be a C function
        code = getattr(call, "__code__", None)
    if isinstance(code, CodeType) and code.co_flags & _IS_ASYNC:
        raise TypeError(
            f"{fn!r} is an async function: replicas would return coroutines, and its body would not run. Write a "
            "step function with def; it may call asyncio.run(...)"
        )


def check_input_options(options: Any) -> None:
    """Raise TypeError unless the options of a distributed dataset are an InputOptions or None."""
    if options is None:
        return
    from ringlet.data import InputOptions

    if not isinstance(options, InputOptions):
        raise TypeError(
            f"options must be a ringlet.data.InputOptions or None, got {options!r} of type {type(options).__name__}: "
            "write options=InputOptions(...)"
        )


def refuse_per_replica(extended: Any, options: Any) -> None:
    """Raise NotImplementedError if the options request PER_REPLICA, for a strategy that supports PER_WORKER only."""
    if options is not None and options.experimental_replication_mode.name == "PER_REPLICA":
        raise NotImplementedError(
            "InputReplicationMode.PER_REPLICA is only supported in distribute_datasets_from_function (formerly "
            f"experimental_distribute_datasets_from_function) of MirroredStrategy, not of "
            f"{extended._container_strategy()!r}. Use PER_WORKER, which distributes batches to the replicas round-robin"
        )
