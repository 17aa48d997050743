"""Which of NumPy's functions run tile by tile: the table that ``__array_function__`` looks in."""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from ringlet.sharding.creation import place
from ringlet.sharding.execution.gather_fallback import gathering
from ringlet.sharding.explain import noted_as_one
from ringlet.sharding.layout.layout import Layout
from ringlet.sharding.sharded_array import ShardedArray
from ringlet.values.operator_proxy import plain

__all__ = [
    "call_gathered",
    "dispatch",
    "first_given",
    "gathered",
    "has_subclass",
    "implementations",
    "implements",
    "numpy_function",
]

F = TypeVar("F", bound=Callable[..., Any])

# The modules that register what they implement; loaded when the first function is called.
_HOMES: tuple[str, ...] = (
    "halo.correlate",
    "ops.select_functions",
    "ops.comparison",
    "ops.differences",
    "ops.metadata_functions",
    "ops.joining_functions",
    "ops.like_functions",
    "ops.repeating",
    "ops.reshaping",
    "ops.axis_functions",
    "ops.splitting",
    "ops.taking",
    "ops.pointwise",
    "ops.inplace_fallback",
    "ops.diagonals",
    "products.einsum",
    "products.gufuncs",
    "products.matrices",
    "products.products",
    "reductions.argreductions",
    "reductions.norms",
    "reductions.reductions",
    "reductions.scans",
    "ops.sorting",
    "reductions.statistics",
)

_TABLE: dict[Callable[..., Any], Callable[..., Any]] = {}

# Names of those that make arrays, and come here, perhaps as others than they are called, if that is to be `like` one.
_NAMES = """arange array asanyarray asarray ascontiguousarray asfortranarray empty eye frombuffer fromfile fromfunction
    fromiter fromstring full genfromtxt identity loadtxt ones require tri zeros"""
_CREATORS = frozenset(_NAMES.split())
# Those that give an array also where there are no dimensions, and not a number.
_COPIES = frozenset(("astype", "copy", "empty_like", "full_like", "ones_like", "zeros_like"))


def implements(*functions: Callable[..., Any] | str) -> Callable[[F], F]:
    """Register what runs in place of functions of NumPy where one of their arguments is a ShardedArray.

    It is called as they are, and gives ``NotImplemented`` for arguments for which the arrays are to be gathered.

    Parameters
    ----------
    functions : callable or str
        Functions of NumPy, or, for those that not every version has, their names below ``numpy``.

    Examples
    --------
    >>> @implements(np.i0, "function_of_a_later_numpy")  # doctest: +SKIP
    ... def i0(x):
    ...     return NotImplemented  # it is gathered
    """

    def register(implementation: F) -> F:
        for function in functions:
            known = numpy_function(function) if isinstance(function, str) else function
            if known is not None:
                _TABLE[known] = implementation
        return implementation

    return register


def numpy_function(name: str) -> Callable[..., Any] | None:
    """Give a function by its name below ``numpy``; None if this version has no such function.

    Examples
    --------
    >>> numpy_function("linalg.norm") is np.linalg.norm, numpy_function("function_of_a_later_numpy")
    (True, None)
    """
    try:
        function: Callable[..., Any] = operator.attrgetter(name)(np)
    except AttributeError:
        return None
    return function


def first_given(function: Callable[..., Any], implementation: Callable[..., Any]) -> Callable[..., Any]:
    """Let an implementation be called with its first argument by the name that a function of NumPy has for it.

    Examples
    --------
    >>> first_given(np.flip, lambda array, axis=None: (array, axis))(m=3, axis=1)
    (3, 1)
    """
    try:
        name = next(iter(inspect.signature(function).parameters))
    except ValueError:  # compiled functions tell it from NumPy 2.4 on; here it is that of putmask
        name = "a"

    def called(*args: Any, **kwargs: Any) -> Any:
        return implementation(*args, **kwargs) if args else implementation(kwargs.pop(name), **kwargs)

    return called


@functools.cache
def implementations() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Give what runs in place of each function of NumPy that is not run on gathered arrays."""
    for home in _HOMES:
        importlib.import_module(f"ringlet.sharding.{home}")
    return _TABLE


def dispatch(
    array: ShardedArray,
    function: Callable[..., Any],
    types: Iterable[type],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Run a function of NumPy, one argument of which is a ShardedArray: tile by tile, or on gathered arrays.

    Parameters
    ----------
    array : ShardedArray
        Whose ``__array_function__`` is called: one of the arguments, or the one that creation functions got as `like`.
    function, types, args, kwargs
        As ``__array_function__`` gets them.

    Returns
    -------
    ShardedArray or what the function gives
        What it gives for gathered arrays, without a sharding; ``NotImplemented`` if there are arrays of other kinds.
    """
    if not all(issubclass(kind, (ShardedArray, np.ndarray)) for kind in types):
        return NotImplemented
    name = _name_of(function)
    if name in _CREATORS:
        return _created(array, function, args, kwargs)
    implementation = None if has_subclass(types) else implementations().get(function)
    operands = (*args, *kwargs.values())

    def work() -> Any:
        result = NotImplemented if implementation is None else implementation(*args, **kwargs)
        if result is NotImplemented:
            return call_gathered(function, f"np.{name}", args, kwargs)
        if isinstance(result, ShardedArray) and name not in _COPIES and all(x is not result for x in operands):
            return result._as_result()
        return result

    return noted_as_one(name, (args, tuple(kwargs.values())), work)


def _name_of(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__name__}".removeprefix("numpy.")


def _created(like: ShardedArray, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A new array on the devices of another one, whole on each; an array that is sharded already stays as it is."""
    if args and isinstance(args[0], ShardedArray):
        dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
        return args[0].astype(args[0].dtype if dtype is None else dtype, copy=function is np.array)
    made = function(*args, **kwargs)
    return place(made, Layout.replicated(like._layout.num_devices, made.ndim), like._group)


def has_subclass(types: Iterable[type]) -> bool:
    """Tell whether there are arrays of which tiles do not say all, such as masked ones, and NumPy is to be asked.

    Raises
    ------
    TypeError
        If there is a matrix, of which ``*`` and ``**`` mean something else than their ufuncs do.

    Examples
    --------
    >>> has_subclass([ShardedArray, np.memmap, float]), has_subclass([np.ma.MaskedArray])
    (False, True)
    """
    kinds = [kind for kind in types if issubclass(kind, np.ndarray) and kind not in (np.ndarray, np.memmap)]
    if any(issubclass(kind, np.matrix) for kind in kinds):
        raise TypeError("sharded arrays are not computed with together with np.matrix: give np.asarray(matrix)")
    return bool(kinds)


def call_gathered(function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function with the gathered values of sharded arrays; an `out` among them gets the result.

    Parameters
    ----------
    function : callable
    name : str
        What reports and warnings call it.
    args : tuple
        Sharded arrays may be at any depth of lists, tuples and dictionaries.
    kwargs : dict
    """
    args, kwargs, out = _without_out(function, *_without_scratch(function, args, kwargs))
    args, kwargs = gathered(name, args), gathered(name, kwargs)
    if out is None:
        return function(*args, **kwargs)
    # Elements that `where` leaves out keep their values.
    scratch = np.array(out) if "where" in kwargs else np.empty(out.shape, out.dtype)
    function(*args, **kwargs, out=scratch)
    out[...] = scratch
    return out


def gathered(name: str, value: Any) -> Any:
    """Give values with every sharded array in them gathered, which is counted as the doing of the function `name`."""
    value = plain(value)
    if isinstance(value, ShardedArray):
        if not value._layout.is_replicated:
            gathering(name, value)
        return value._gathered()
    if isinstance(value, dict):
        return {key: gathered(name, item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(gathered(name, item) for item in value)
    return value


def _without_out(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], ShardedArray | None]:
    """Take the sharded array that is to be written to from the arguments, by place or by name."""
    if isinstance(kwargs.get("out"), ShardedArray):
        others = dict(kwargs)
        return args, others, others.pop("out")
    names = _names_by_place(function)
    place = names.index("out") if "out" in names else len(args)
    if place >= len(args) or not isinstance(args[place], ShardedArray):
        return args, kwargs, None
    later = dict(zip(names[place + 1 :], args[place + 1 :], strict=False))
    return args[:place], {**kwargs, **later}, args[place]


def _without_scratch(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Leave out that quantiles may overwrite what they are given: gathered arrays are read-only."""
    if "overwrite_input" not in _names_by_place(function):
        return args, kwargs
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.arguments.pop("overwrite_input", None)
    return bound.args, bound.kwargs


@functools.cache
def _names_by_place(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some of NumPy's compiled functions do not tell
        return []
    return [name for name, it in parameters.items() if it.kind is not inspect.Parameter.KEYWORD_ONLY]
