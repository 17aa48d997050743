"""Pickle diagnostics: finds the object that prevents pickling."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

_MOST_DEPTH = 20


def named(value: object) -> str:
    """Return the text for an object in messages: the name of a function or class, else "an object of class ..."."""
    name = getattr(value, "__qualname__", None)
    return str(name) if isinstance(name, str) else f"an object of class {type(value).__qualname__}"


def culprit(value: object, can_be_sent: Callable[[Any], bool], *, sends_code: bool = True) -> str:
    """Return the name of the innermost object that cannot be pickled, and its location.

    With `sends_code`, functions are pickled by value, with their variables, and not by name.
    """
    places: list[str] = []
    seen: set[int] = set()
    for _ in range(_MOST_DEPTH):
        seen.add(id(value))
        for place, part in _parts(value) if sends_code or not isinstance(value, types.FunctionType) else ():
            if id(part) not in seen and not can_be_sent(part):
                is_inside = place.startswith("[") and places and places[-1].endswith("]")
                places.append(places.pop() + place if is_inside else place)
                value = part
                break
        else:
            break
    if not places:
        return named(value)
    return f"{', in '.join((places[-1], *places[:-1][:1]))} ({named(value)})"


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the location and the value of each object that is pickled as part of `value`."""
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"[{i}]", item) for i, item in enumerate(value))
    elif isinstance(value, functools.partial):
        yield from (("func of a partial", value.func), ("args of a partial", value.args), ("keywords", value.keywords))
    elif isinstance(value, types.MethodType):
        yield from ((f"the object of method {named(value)}", value.__self__), ("its function", value.__func__))
    elif isinstance(value, types.FunctionType):
        variables = {**_globals_of(value.__code__, value.__globals__), **_cells_of(value)}
        yield from ((f"variable {name!r} of {named(value)}", item) for name, item in variables.items())
        yield from ((f"a default of {named(value)}", item) for item in value.__defaults__ or ())
    elif not isinstance(value, (type, types.ModuleType)):
        attributes = getattr(value, "__dict__", {})
        try:
            value.__reduce_ex__(4)
        except Exception:  # the class itself prevents pickling, not an attribute
            return
        yield from ((f"attribute {name!r} of {named(value)}", item) for name, item in attributes.items())


def _cells_of(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # the variable is not assigned yet
            continue
    return found


def _globals_of(code: types.CodeType, variables: dict[str, Any]) -> dict[str, Any]:
    found = {name: variables[name] for name in code.co_names if name in variables}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _globals_of(constant, variables)
    return found
