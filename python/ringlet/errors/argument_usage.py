"""Argument usage: what to write, in errors about missing or unexpected arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def with_usage(usage: str) -> Callable[[F], F]:
    """Return a decorator that adds `usage` to the TypeError of Python about missing or unexpected arguments."""

    def decorated(function: F) -> F:
        is_method = "." in function.__qualname__

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise  # by the body of the function
                given = [repr(value) if type(value) is str else type(value).__name__ for value in args[is_method:]]
                given += [f"{name}=..." for name in kwargs]
                message = f"{error}: got ({', '.join(given)}). Write {usage}"
            raise TypeError(message) from None

        return cast(F, call)

    return decorated
