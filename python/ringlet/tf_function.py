"""``tf.function`` for eager execution: a decorator that keeps the interface and calls the Python function."""

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
    """The callable that the decorator :func:`function` returns.

    Every call runs the Python function. A decorated method is bound to its object like any method.

    Parameters
    ----------
    python_function : callable
    input_signature : sequence of TensorSpec, optional

    Attributes
    ----------
    python_function : callable
        The decorated function.
    input_signature : sequence of TensorSpec or None
        The argument of the decorator.

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
        """Bind to an object, as functions do."""
        if instance is None:
            return self
        bind = getattr(self.python_function, "__get__", None)
        bound = functools.partial(self.python_function, instance) if bind is None else bind(instance, owner)
        return type(self)(bound, self.input_signature)

    def __reduce__(self) -> Any:
        """Pickle by name, like a function, if a module has this object under its name; else by value."""
        found: Any = sys.modules.get(self.__module__)
        path: str = getattr(self, "__qualname__", "")
        for name in path.split("."):
            found = getattr(found, name, None)
        if found is self and self.__module__ != "__main__":
            return path
        return super().__reduce__()

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError, because there are no graphs."""
        self._refuse("get_concrete_function", "call the function itself")

    def experimental_get_compiler_ir(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError, because there is no compiler; see :meth:`get_concrete_function`."""
        self._refuse("experimental_get_compiler_ir", "use a library that compiles, such as JAX")

    def experimental_get_tracing_count(self) -> int:
        """Return the number of traces: always 0, because every call runs the Python function."""
        return 0

    get_compiler_ir = experimental_get_compiler_ir
    get_tracing_count = experimental_get_tracing_count

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> NoReturn:
        """Raise NotImplementedError, because there are no graphs; see :meth:`get_concrete_function`."""
        self._refuse("pretty_printed_concrete_signatures", "look at inspect.signature of the function")

    def _refuse(self, name: str, instead: str) -> NoReturn:
        raise NotImplementedError(
            f"{name} of {self!r}: functions run eagerly here and have no graphs. Instead, {instead}"
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
    """Mark a function as ``tf.function`` does; the function still runs eagerly.

    For programs written for TensorFlow. Nothing is traced, and no graph is built: every call runs the function with
    the arguments unchanged.

    Parameters
    ----------
    func : callable, optional
        The function to mark. Without it, a decorator is returned: ``@function(jit_compile=True)``.
    input_signature : sequence of TensorSpec, optional
        Stored as an attribute; arguments are not checked against it.
    autograph, jit_compile, reduce_retracing : bool, optional
        Accepted for compatibility; without effect.
    experimental_implements, experimental_autograph_options, experimental_attributes : optional
        Accepted for compatibility; without effect.
    experimental_relax_shapes, experimental_compile, experimental_follow_type_hints : bool, optional
        Accepted for compatibility; without effect.

    Returns
    -------
    Function
        Called like the function itself; a decorator if `func` is omitted.

    Raises
    ------
    TypeError
        If `func` is not callable, or is an async function.

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
    """Raise TypeError unless an object can be decorated by :func:`function`."""
    if not callable(func):
        raise TypeError(
            f"function decorates a callable, got {func!r} of type {type(func).__name__}: write @function above a def"
        )
    if inspect.iscoroutinefunction(func) or inspect.isasyncgenfunction(func):
        raise TypeError(f"{func!r} is an async function, which a step cannot call: write it with def")
