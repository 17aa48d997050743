"""What a checkpoint takes each object for."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.values import ShardedVariable, Variable

__all__ = ["Group", "Kind", "children_of", "holds_state", "is_state", "kind_name", "kind_of_object", "refusal"]

MOST_LEVELS = 100


class Group:
    """What has named children that can be restored one by one; :class:`~ringlet.train.Checkpoint` is one."""

    def _children(self) -> dict[str, Any]:
        """What is saved of it, by name."""
        raise NotImplementedError


class Kind(enum.Enum):
    """What a checkpoint takes an object for."""

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


# What objects of other classes are: the first that fits.
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
    """Tell what a checkpoint takes an object for; None if it cannot be saved.

    Examples
    --------
    >>> kind_of_object([1]), kind_of_object(np.float32(1)), kind_of_object(object())
    (<Kind.LIST: 'list'>, <Kind.SCALAR: 'scalar'>, None)
    """
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
    """Give what messages call a kind, with its article."""
    name = _NAMES.get(kind, kind.value)
    return name if kind is Kind.NONE else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def is_state(kind: Kind | None) -> bool:
    """Whether objects of a kind keep their identity when they are restored: what is in them changes."""
    return kind in (Kind.VARIABLE, Kind.GROUP, Kind.STATE, Kind.STATE_DICT)


def children_of(value: Any, kind: Kind) -> Iterator[tuple[Any, Any]]:
    """Give the key and the value of everything in a container; nothing for others.

    Examples
    --------
    >>> list(children_of(["a"], Kind.LIST)), list(children_of(3, Kind.INT))
    ([(0, 'a')], [])
    """
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
    """Whether an object is, or contains, one that keeps its identity.

    Examples
    --------
    >>> holds_state({"a": [1, 2]}), holds_state({"a": [Variable(1.5)]})
    (False, True)
    """
    seen: set[int] = set()  # each container once, however many ways lead to it
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


def refusal(value: Any, name: str) -> str:
    """Say why an object cannot be saved, and what can."""
    if isinstance(value, enum.Enum):
        return f"{name} is {value!r}, a member of an enumeration: save its value, and look the member up afterwards"
    if isinstance(value, np.ma.MaskedArray):
        return f"{name} is a masked array: save its data and its mask, each under a name of its own"
    shown = repr(value)
    return (
        f"`Checkpoint` was expecting {name} to be a trackable object, got {shown[:200]} of type "
        f"{type(value).__name__}: these are variables, numbers, text, bytes, None, arrays, lists, tuples, dictionaries "
        "and dataclasses of these, and objects with the methods get_state and set_state, or state_dict and "
        "load_state_dict. Give the class such methods"
    )
