"""What ``tf.function`` makes of a Python function, as far as a program that runs eagerly can tell."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar, overload

__all__ = ["Function", "function"]

P = ParamSpec("P")
R = TypeVar("R")


class Function(Generic[P, R]):
    """A function that :func:`function` was given. Made by that decorator.

    Calls go to the Python function, every time; methods are bound as those of any function.

    Parameters
    ----------
    python_function : callable
    input_signature : sequence of TensorSpec, optional

    Attributes
    ----------
    python_function : callable
        What was decorated.
    input_signature : sequence of TensorSpec or None
        As it was given.

    Examples
    --------
    >>> class Model:
    ...     scale = 2
    ...     @function
    ...     def __call__(self, x):
    ...         return self.scale * x
    >>> Model()(3)
    6
    """

    def __init__(self, python_function: Callable[P, R], input_signature: Any = None) -> None:
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        self.input_signature = input_signature

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the Python function."""
        return self.python_function(*args, **kwargs)

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        """Give the method of an object."""
        if instance is None:
            return self
        bind = getattr(self.python_function, "__get__", None)
        bound = functools.partial(self.python_function, instance) if bind is None else bind(instance, owner)
        return type(self)(bound, self.input_signature)

    def __reduce__(self) -> Any:
        """Pickle by name what a module has under its name, as functions are pickled; anything else as an object."""
        found: Any = sys.modules.get(self.__module__)
        path: str = getattr(self, "__qualname__", "")
        for name in path.split("."):
            found = getattr(found, name, None)
        if found is self and self.__module__ != "__main__":
            return path
        return super().__reduce__()

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: there are no graphs.

        Raises
        ------
        NotImplementedError
            Always; says what to do instead.
        """
        self._refuse("get_concrete_function", "call the function itself")

    def experimental_get_compiler_ir(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: there is no compiler; as :meth:`get_concrete_function`."""
        self._refuse("experimental_get_compiler_ir", "compile the arithmetic with a library that does, such as JAX")

    def experimental_get_tracing_count(self) -> int:
        """Give the number of traces: always 0, because every call runs the Python function."""
        return 0

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> NoReturn:
        """Refuse: there are no graphs; as :meth:`get_concrete_function`."""
        self._refuse("pretty_printed_concrete_signatures", "look at inspect.signature of the function")

    def _refuse(self, name: str, instead: str) -> NoReturn:
        raise NotImplementedError(
            f"{name} of {self!r}: functions run eagerly here, and there is no graph of them. Instead, {instead}"
        )

    def __repr__(self) -> str:
        name = getattr(self.python_function, "__qualname__", repr(self.python_function))
        return f"<ringlet.function {name}>"


@overload
def function(
    func: Callable[P, R],
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Function[P, R]: ...
@overload
def function(
    func: None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Callable[[Callable[P, R]], Function[P, R]]: ...
def function(  # noqa: PLR0917  # TensorFlow's
    func: Any = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Any:
    """Mark a function as ``tf.function`` does; it runs eagerly, as if it were not marked.

    For programs that were written for TensorFlow. There is no tracing and no graph: the Python function runs at every
    call, prints and counts at every call, and sees Python's numbers as they are.

    Parameters
    ----------
    func : callable, optional
        What to mark. Without it, a decorator is given: ``@function(jit_compile=True)``.
    input_signature : sequence of TensorSpec, optional
        Kept, to be read; arguments are not held to it.
    autograph, jit_compile, reduce_retracing : bool, optional
        Accepted as TensorFlow accepts them; without effect.
    experimental_implements, experimental_autograph_options, experimental_attributes : optional
        Accepted; without effect.
    experimental_relax_shapes, experimental_compile, experimental_follow_type_hints : bool, optional
        Accepted; without effect.

    Returns
    -------
    Function
        Called as the function itself; or the decorator.

    Raises
    ------
    TypeError
        If `func` cannot be called, or is an ``async def``.

    Examples
    --------
    >>> @function
    ... def square(x):
    ...     return x * x
    >>> square(3), square.python_function(3)
    (9, 9)
    >>> @function(jit_compile=True)
    ... def half(x):
    ...     return x / 2
    >>> half(3)
    1.5
    """
    if func is None:
        return lambda decorated: function(decorated, input_signature)
    check_function(func)
    return Function(func, input_signature)


def check_function(func: Any) -> None:
    """Refuse what cannot be marked as a function.

    Raises
    ------
    TypeError
        If it cannot be called, or is an ``async def``.

    Examples
    --------
    >>> check_function(abs)
    """
    if not callable(func):
        raise TypeError(
            f"function marks a callable, got {func!r} of type {type(func).__name__}: write @function above a def"
        )
    if inspect.iscoroutinefunction(func) or inspect.isasyncgenfunction(func):
        raise TypeError(f"{func!r} is an async function, which steps cannot call: write it with def")
