"""Table of NumPy functions implemented for sharded arrays; ``__array_function__`` dispatches through it."""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from ringlet.sharding.creation import place
from ringlet.sharding.execution.cached_calls import EXACT, STACKED, cached
from ringlet.sharding.execution.gather_fallback import record_gather
from ringlet.sharding.explain_operations import recorded_as_one
from ringlet.sharding.layout.layout import Layout
from ringlet.sharding.sharded_array import ShardedArray
from ringlet.values.operator_proxy import plain

F = TypeVar("F", bound=Callable[..., Any])

# Modules that register implementations; loaded at the first call.
_HOMES = """halo.correlate ops.axis_functions ops.composed ops.diagonals ops.joining_functions ops.like_functions
    ops.lines ops.metadata_functions ops.numpy_bodies ops.pointwise ops.repeating ops.reshaping ops.scatter
    ops.select_functions ops.selection ops.sorting ops.taking products.einsum products.gufuncs
    products.matrices products.products reductions.argreductions reductions.histograms reductions.norms
    reductions.quantiles reductions.reductions reductions.scans reductions.statistics"""

_TABLE: dict[Callable[..., Any], Callable[..., Any]] = {}

_KINDS = frozenset((ShardedArray, np.ndarray))
# Creation functions, which NumPy may dispatch under another name if `like` is sharded.
_NAMES = """arange array asanyarray asarray ascontiguousarray asfortranarray empty eye frombuffer fromfile fromfunction
    fromiter fromstring full genfromtxt identity loadtxt ones require tri zeros"""
_CREATORS = frozenset(_NAMES.split())
# Functions whose 0-d results are arrays, not scalars.
_COPIES = frozenset(("astype", "copy", "empty_like", "full_like", "ones_like", "zeros_like"))


def implements(*functions: Callable[..., Any] | str) -> Callable[[F], F]:
    """Register an implementation of NumPy functions; functions that some versions lack are given by name.

    The implementation receives the same arguments, which contain a ShardedArray, and returns ``NotImplemented`` to
    request gathered arrays.
    """

    def register(implementation: F) -> F:
        for function in functions:
            known = numpy_function(function) if isinstance(function, str) else function
            if known is not None:
                _TABLE[known] = implementation
        return implementation

    return register


def numpy_function(name: str) -> Callable[..., Any] | None:
    """Return the function with this name in ``numpy``; None if the installed version lacks it."""
    try:
        function: Callable[..., Any] = operator.attrgetter(name)(np)
    except AttributeError:
        return None
    return function


def first_given(function: Callable[..., Any], implementation: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an implementation so that its first argument may also be passed by the NumPy function's name for it."""
    try:
        name = next(iter(inspect.signature(function).parameters))
    except ValueError:  # compiled functions have no signature before NumPy 2.4; putmask names its array `a`
        name = "a"

    def called(*args: Any, **kwargs: Any) -> Any:
        return implementation(*args, **kwargs) if args else implementation(kwargs.pop(name), **kwargs)

    return called


@functools.cache
def implementations() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return the implementations of NumPy functions; functions without one run on gathered arrays."""
    for home in _HOMES.split():
        importlib.import_module(f"ringlet.sharding.{home}")
    return _TABLE


def dispatch(
    array: ShardedArray,
    function: Callable[..., Any],
    types: Iterable[type],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Run a NumPy function that got a ShardedArray; return NotImplemented if it also got another library's arrays."""
    kinds = {*types} - _KINDS
    if not all(issubclass(kind, (ShardedArray, np.ndarray)) for kind in kinds):
        return NotImplemented

    def work() -> Any:
        return _run(array, function, kinds, args, kwargs)

    if function in EXACT:
        return cached(function, args, work, kwargs=kwargs, exact=function)
    return cached(function, args, work, kwargs=kwargs) if function in STACKED else work()


def _run(
    array: ShardedArray,
    function: Callable[..., Any],
    kinds: Iterable[type],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    name = _name_of(function)
    if name in _CREATORS:
        return _created(array, function, args, kwargs)
    implementation = None if has_subclass(kinds) else implementations().get(function)
    operands = (*args, *kwargs.values())

    def work() -> Any:
        result = NotImplemented if implementation is None else implementation(*args, **kwargs)
        if result is NotImplemented:
            return call_gathered(function, f"np.{name}", args, kwargs)
        if isinstance(result, ShardedArray) and name not in _COPIES and all(x is not result for x in operands):
            return result._as_result()
        return result

    return recorded_as_one(name, (args, tuple(kwargs.values())), work)


@functools.cache
def _name_of(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__name__}".removeprefix("numpy.")


def _created(like: ShardedArray, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Create an array replicated on the devices of `like`; if the first argument is sharded, return it converted."""
    if args and isinstance(args[0], ShardedArray):
        dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
        is_copied = bool(kwargs.get("copy", function is np.array))
        return args[0].astype(args[0].dtype if dtype is None else dtype, copy=is_copied)
    made = function(*args, **kwargs)
    return place(made, Layout.replicated(like._layout.num_devices, made.ndim), like._group)


def has_subclass(types: Iterable[type]) -> bool:
    """Return whether NumPy must dispatch to a subclass, such as masked arrays; raise TypeError for a matrix."""
    kinds = [kind for kind in types if issubclass(kind, np.ndarray) and kind not in (np.ndarray, np.memmap)]
    if any(issubclass(kind, np.matrix) for kind in kinds):
        raise TypeError("sharded arrays cannot be combined with np.matrix: pass np.asarray(matrix)")
    return bool(kinds)


def call_gathered(function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function with sharded arrays gathered, at any depth of its arguments; a sharded `out` gets the result."""
    args, kwargs, out = _without_out(function, *_without_scratch(function, args, kwargs))
    args, kwargs = gathered(name, args), gathered(name, kwargs)
    if out is None:
        return function(*args, **kwargs)
    # Elements excluded by `where` keep their values.
    scratch = np.array(out) if "where" in kwargs else np.empty(out.shape, out.dtype)
    function(*args, **kwargs, out=scratch)
    out[...] = scratch
    return out


def gathered(name: str, value: Any) -> Any:
    """Return `value` with every sharded array in it gathered; reports attribute the gathers to `name`."""
    value = plain(value)
    if isinstance(value, ShardedArray):
        if not value._is_everywhere():
            record_gather(name, value)
        return value._gathered()
    if isinstance(value, dict):
        return {key: gathered(name, item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(gathered(name, item) for item in value)
    return value


def _without_out(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any], ShardedArray | None]:
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
    """Return the arguments without `overwrite_input` of quantiles, because gathered arrays are read-only."""
    if "overwrite_input" not in _names_by_place(function):
        return args, kwargs
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.arguments.pop("overwrite_input", None)
    return bound.args, bound.kwargs


@functools.cache
def _names_by_place(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some of NumPy's compiled functions have no signature
        return []
    return [name for name, it in parameters.items() if it.kind is not inspect.Parameter.KEYWORD_ONLY]
