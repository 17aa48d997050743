"""Check for state of user functions, which an iterator cannot save.

Variables and random number generators are detected in the code of a function, which is inspected but not run. The
search starts at the globals, closure variables and bound object that the code uses, and follows attributes, as in
``np.random.normal`` or ``self.rng``, and functions of the same package. References through containers or compiled code
are not detected.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import functools
import inspect
import random
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ringlet.data.graph.iteration_context import Graph, graph_nodes
from ringlet.data.graph.node import Node
from ringlet.data.operations.with_options import options_of
from ringlet.data.policies import ExternalStatePolicy
from ringlet.errors import FailedPreconditionError
from ringlet.values.variables.variable import Variable

_REMEDY = (
    "Draw random numbers from a seed in the element; or, if the functions have no state, set "
    "options.experimental_external_state_policy to IGNORE."
)


def check_external_state(graph: Graph) -> None:
    """Warn or raise an error before an iterator is saved, according to the options of its dataset.

    Without a policy, raises FailedPreconditionError if the code of a function that computes elements reads a variable
    or draws random numbers.
    """
    for node in [graph] if isinstance(graph, Node) else graph.inputs:
        policy = options_of(node).experimental_external_state_policy
        if policy is ExternalStatePolicy.IGNORE or not node.runs_user_code:
            continue
        if policy is None:
            found = _state_of(node)
            if found is not None:
                raise FailedPreconditionError(f"{found}, but this state is not saved with the iterator. {_REMEDY}")
            continue
        what = (
            "elements of this dataset are computed by user functions or iterables, which may have state (a random "
            "number generator, a file). That state is not saved with the iterator."
        )
        if policy is ExternalStatePolicy.FAIL:
            raise FailedPreconditionError(f"{what} {_REMEDY}")
        warnings.warn(what, stacklevel=3)


def _state_of(root: Node) -> str | None:
    """Return a description of the external state that a function of a graph uses, or None."""
    for node in graph_nodes(root):
        for field in dataclasses.fields(node) if node.runs_user_code else ():
            value = getattr(node, field.name)
            found = state_read_by(value) if callable(value) and not isinstance(value, type) else None
            if found is not None:
                return f"{getattr(value, '__qualname__', repr(value))} of {type(node).__name__} is stateful: {found}"
    return None


_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_ABSENT = object()


@functools.cache
def _generators() -> tuple[type[Any], ...]:
    # A function instead of a constant, since NumPy imports numpy.random lazily.
    return np.random.Generator, np.random.RandomState, random.Random


def state_read_by(function: Any) -> str | None:
    """Return a description of the variable or random number generator that a function uses, or None."""
    return _found(function, set())


def _found(function: Any, seen: set[int]) -> str | None:
    function = inspect.unwrap(function)
    if isinstance(function, functools.partial):
        kinds = (_kind(value, "an argument") for value in (*function.args, *function.keywords.values()))
        return next(filter(None, kinds), None) or _found(function.func, seen)
    bound = getattr(function, "__self__", _ABSENT)
    what = _kind(function, getattr(function, "__qualname__", "it"))
    if what is not None:
        return what
    if isinstance(function, types.MethodType):
        function = function.__func__
    elif not isinstance(function, types.FunctionType):
        call = inspect.getattr_static(type(function), "__call__", None)
        if not isinstance(call, types.FunctionType):
            return None
        function, bound = call, function
    if id(function) in seen:
        return None
    seen.add(id(function))
    package = (function.__module__ or "").partition(".")[0]
    for name, value in _reached(function, bound):
        what = _kind(value, name)
        if what is None and isinstance(value, (types.FunctionType, types.MethodType)):
            is_own = (value.__module__ or "").partition(".")[0] == package
            what = _found(value, seen) if is_own else None
        if what is not None:
            return what
    return None


def _kind(value: Any, name: str) -> str | None:
    if isinstance(value, Variable):
        return f"it reads the variable {name}"
    if isinstance(value, _generators()) or isinstance(getattr(value, "__self__", None), _generators()):
        return f"it draws random numbers from {name}"
    return None


def _reached(function: types.FunctionType, bound: Any) -> Iterator[tuple[str, Any]]:
    """Yield the path, such as ``self.rng``, and the value of each name and attribute chain in the code."""
    names: dict[str, Any] = {**vars(builtins), **function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # the cell is empty
            names[name] = _ABSENT
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
    names.update(dict.fromkeys(function.__code__.co_varnames, _ABSENT))
    defaults = function.__defaults__ or ()
    names.update(zip(parameters[len(parameters) - len(defaults) :], defaults, strict=True))
    names.update(function.__kwdefaults__ or {})
    if bound is not _ABSENT and parameters:
        names[parameters[0]] = bound
    for code in _codes(function.__code__):
        path, value = "", _ABSENT
        for step in dis.get_instructions(code):
            if step.opname in _ATTRIBUTES:
                found = [(f"{path}.{step.argval}", _attribute(value, step.argval))] if value is not _ABSENT else []
            else:
                # From Python 3.13 on, one instruction may load two variables, or store one and load another.
                loaded = step.argval if isinstance(step.argval, tuple) else (step.argval,)
                is_load = "LOAD_" in step.opname and step.opname != "LOAD_CONST"
                found = [(name, names.get(name, _ABSENT)) for name in loaded if is_load and isinstance(name, str)]
            path, value = found[-1] if found else ("", _ABSENT)
            yield from (each for each in found if each[1] is not _ABSENT)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute without running property code."""
    found = inspect.getattr_static(value, name, _ABSENT)
    if isinstance(found, types.FunctionType) and not isinstance(value, (type, types.ModuleType)):
        return types.MethodType(found, value)
    return found
