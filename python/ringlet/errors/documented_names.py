"""Documented names: tracebacks show internal subclasses of documented exceptions under the documented name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

E = TypeVar("E", bound=type[BaseException])


def shown_as(documented: type[BaseException]) -> Callable[[E], E]:
    """Return a decorator that makes tracebacks show an exception class as `documented`; pickles keep the original.

    Examples
    --------
    >>> @shown_as(ValueError)
    ... class WrongKey(ValueError): ...
    >>> WrongKey
    <class 'ValueError'>
    """

    def renamed(cls: E) -> E:
        home = cls.__module__, cls.__name__

        def reduce(error: BaseException) -> tuple[Any, ...]:
            return _restored, (*home, error.args, error.__dict__)

        cls.__reduce__ = reduce  # type: ignore[assignment]
        cls.__module__, cls.__name__ = documented.__module__, documented.__name__
        cls.__qualname__ = documented.__qualname__
        return cls

    return renamed


def _restored(module: str, name: str, args: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    kind = getattr(importlib.import_module(module), name)
    error: BaseException = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error
