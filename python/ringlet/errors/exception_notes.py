"""Texts of exceptions, and notes that tracebacks show below them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def class_and_text(error: BaseException) -> str:
    """Return the name of an exception's class and its text, if it has one.

    Examples
    --------
    >>> class_and_text(ValueError("odd")), class_and_text(KeyboardInterrupt())
    ('ValueError: odd', 'KeyboardInterrupt')
    """
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def with_usage(usage: str) -> Callable[[F], F]:
    """Return a decorator that adds `usage` to Python's TypeError about missing or unexpected arguments."""

    def decorated(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise  # the error comes from the body of the function
                owner = function.__qualname__.rpartition(".")[0]
                values = args[bool(owner) :]  # without self
                given = [repr(value[:50]) if type(value) is str else type(value).__name__ for value in values]
                text = str(error).replace(owner, type(args[0]).__name__, 1) if owner and args else error
                message = f"{text}: got ({', '.join([*given, *(f'{name}=...' for name in kwargs)])}). Write {usage}"
            raise TypeError(message) from None

        return call  # type: ignore[return-value]

    return decorated


class _Absent(str):
    def __get__(self, instance: object, owner: type) -> _Absent:
        if instance is None:
            return self
        raise AttributeError(f"{owner.__name__!r} {self}")


def without(**remedies: str) -> Callable[[C], C]:
    """Return a class decorator that adds a remedy to the AttributeError for each named attribute.

    Sets descriptors, because a ``__getattr__`` would slow down every access to an attribute of the class.
    """

    def decorated(cls: C) -> C:
        for name, remedy in remedies.items():
            setattr(cls, name, _Absent(f"object has no attribute {name!r}: write {remedy}"))
        cls.__dir__ = lambda self: sorted({*object.__dir__(self)} - remedies.keys())  # type: ignore[assignment,misc]
        return cls

    return decorated


def add_note(error: BaseException, note: str) -> None:
    """Add a line that tracebacks show below an exception, unless the exception has it already.

    Examples
    --------
    >>> error = KeyError("x")
    >>> add_note(error, "in element 3")
    >>> error.__notes__
    ['in element 3']
    """
    # BaseException.add_note exists from Python 3.11 on; in older versions, programs can read the list.
    notes = list(getattr(error, "__notes__", ()))
    if note not in notes:
        error.__notes__ = [*notes, note]  # type: ignore[attr-defined,unused-ignore]
