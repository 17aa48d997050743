"""Kinds of objects that a checkpoint can hold."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.values import ShardedVariable, Variable

MOST_LEVELS = 100


class Group:
    """Base class of containers whose named children are restored one by one, such as Checkpoint."""

    def _children(self) -> dict[str, Any]:
        raise NotImplementedError


class Kind(enum.Enum):
    """The kind of an object, which determines how a checkpoint saves and restores it."""

    VARIABLE = "variable"
    GROUP = "group"
    STATE = "state"
    STATE_DICT = "state_dict"
    DICT = "dict"
    LIST = "list"
    TUPLE = "tuple"
    NAMEDTUPLE = "namedtuple"
    DATACLASS = "dataclass"
    SET = "set"
    FROZENSET = "frozenset"
    NONE = "none"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    COMPLEX = "complex"
    STR = "str"
    BYTES = "bytes"
    BYTEARRAY = "bytearray"
    ARRAY = "array"
    SCALAR = "scalar"
    TENSOR = "tensor"


_EXACT: dict[type[Any], Kind] = {
    type(None): Kind.NONE, bool: Kind.BOOL, int: Kind.INT, float: Kind.FLOAT, complex: Kind.COMPLEX, str: Kind.STR,
    bytes: Kind.BYTES, bytearray: Kind.BYTEARRAY, list: Kind.LIST, tuple: Kind.TUPLE, dict: Kind.DICT, set: Kind.SET,
    frozenset: Kind.FROZENSET, np.ndarray: Kind.ARRAY,
}  # fmt: skip
_CONTAINERS = {Kind.DICT, Kind.LIST, Kind.TUPLE, Kind.NAMEDTUPLE, Kind.DATACLASS, Kind.GROUP}
_NAMES = {Kind.NONE: "None", Kind.STATE: "object with get_state", Kind.STATE_DICT: "object with state_dict",
          Kind.GROUP: "Checkpoint", Kind.ARRAY: "NumPy array", Kind.SCALAR: "NumPy scalar"}  # fmt: skip


def _is_a(base: type[Any]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, base)


def _has(*methods: str) -> Callable[[Any], bool]:
    return lambda value: all(callable(getattr(value, method, None)) for method in methods)


# Kinds by base class or methods; the first match applies.
_TESTS: list[tuple[Kind, Callable[[Any], bool]]] = [
    (Kind.VARIABLE, lambda value: isinstance(value, (Variable, ShardedVariable))),
    (Kind.GROUP, _is_a(Group)),
    (Kind.STATE, _has("get_state", "set_state")),
    (Kind.STATE_DICT, _has("state_dict", "load_state_dict")),
    (Kind.SCALAR, _is_a(np.generic)),
    (Kind.ARRAY, _is_a(np.ndarray)),
    (Kind.DICT, _is_a(dict)),
    (Kind.LIST, _is_a(list)),
    (Kind.NAMEDTUPLE, lambda value: isinstance(value, tuple) and hasattr(value, "_fields")),
    (Kind.DATACLASS, dataclasses.is_dataclass),
]


def kind_of_object(value: Any) -> Kind | None:
    """Return the kind of an object; None if it cannot be saved."""
    exact = _EXACT.get(type(value))
    if exact is not None:
        return exact
    if isinstance(value, (enum.Enum, type, np.ma.MaskedArray)):
        return None
    for kind, is_one in _TESTS:
        if is_one(value):
            return kind
    return None if kind_of(value) is None else Kind.TENSOR


def kind_name(kind: Kind) -> str:
    """Return the name of a kind for messages, with an article."""
    name = _NAMES.get(kind, kind.value)
    return name if kind is Kind.NONE else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def is_state(kind: Kind | None) -> bool:
    """Return whether objects of a kind are variables, groups, or have methods for their state."""
    return kind in (Kind.VARIABLE, Kind.GROUP, Kind.STATE, Kind.STATE_DICT)


def children_of(value: Any, kind: Kind) -> Iterator[tuple[Any, Any]]:
    """Yield the keys and values in a container; nothing for sets and other objects."""
    if kind is Kind.GROUP:
        yield from value._children().items()
    elif kind is Kind.DICT:
        yield from value.items()
    elif kind in (Kind.LIST, Kind.TUPLE):
        yield from enumerate(value)
    elif kind is Kind.NAMEDTUPLE:
        yield from zip(value._fields, value, strict=True)
    elif kind is Kind.DATACLASS:
        yield from ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))


def holds_state(value: Any) -> bool:
    """Return whether an object is or contains a variable, a group, or an object with methods for its state."""
    seen: set[int] = set()  # a container may be reachable by several paths
    waiting = [value]
    while waiting:
        value = waiting.pop()
        kind = kind_of_object(value)
        if is_state(kind):
            return True
        if kind in _CONTAINERS and id(value) not in seen:
            seen.add(id(value))
            waiting.extend(child for _, child in children_of(value, kind))
    return False


def _written(name: str, source: str) -> str:
    return f"Write {name}={source} to save " if name.isidentifier() else "Save "


def refusal(value: Any, name: str) -> str:
    """Return a message with the reason why an object cannot be saved, and the supported types."""
    if isinstance(value, enum.Enum):
        return f"{name} is {value!r}, a member of an enumeration: save its value, and look up the member afterwards"
    if isinstance(value, np.ma.MaskedArray):
        return f"{name} is a masked array: save its data and its mask, each under its own name"
    shown = repr(value)
    remedy = "Define"
    if hasattr(type(value), "variables"):  # a metric, for example
        remedy = _written(name, f"{name}.variables") + "its variables, or define"
    elif getattr(value, "__dict__", None):
        remedy = _written(name, f"vars({name})") + "its attributes, or define"
    return (
        f"`Checkpoint` was expecting {name} to be a trackable object, got {shown[:200]} of type "
        f"{type(value).__name__}. Trackable objects are variables, numbers, text, bytes, None, arrays, lists, tuples, "
        "dictionaries and dataclasses of these, and objects with the methods get_state and set_state, or state_dict "
        f"and load_state_dict. {remedy} such methods in the class"
    )
