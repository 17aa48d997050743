"""Encoder of objects for a checkpoint file: a JSON-serializable tree, and tensors for large values.

A node of the tree is None, a bool, a number or a string, which encode themselves, or a list that begins with the name
of a :class:`~ringlet.train.trackable_types.Kind`::

    ["list", [node, ...]]                 and tuple, set, frozenset
    ["dict", [[key, node], ...]]          and group, namedtuple, dataclass; keys are also nodes
    ["int", "0x..."]                      beyond 64 bits
    ["complex", real, imaginary]
    ["str", tensor]                               long strings
    ["bytes", base64] or ["bytes", null, tensor], and bytearray
    ["array", tensor]                     and scalar
    ["tensor", kind of array, tensor]             an array of another library
    ["state", node]                               from get_state; and state_dict
    ["variable", sort, aggregation, [tensor of each component]]

where ``tensor`` is a name in the file.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.train.checkpoint_writer import Tensor
from ringlet.train.saved_variables import sort_of
from ringlet.train.tensor_dtypes import Array
from ringlet.train.trackable_types import MOST_LEVELS, Kind, children_of, kind_of_object, refusal
from ringlet.values import Variable
from ringlet.values.variables.atomic_snapshot import read_atomically

Node = Any
Path = tuple[Any, ...]

# Maximum length of str and bytes objects in the tree. Longer objects become tensors, because the header holds at most
# 100 MB.
_MOST_IN_TREE = 4096


def name_of(path: Path) -> str:
    """Return the keys of a path joined by ``/``; in a key, ``/`` is written ``.S``, as in TensorFlow's files."""
    parts = [str(part).replace("/", ".S") for part in path]
    return "/".join(parts).encode("utf-8", "backslashreplace").decode("utf-8")


def refuse_depth(path: Path) -> None:
    """Raise a ValueError if a path has too many keys, as in an object that contains itself."""
    if len(path) > MOST_LEVELS:
        raise ValueError(
            f"{name_of(path[:3])}/... is nested more than {MOST_LEVELS} levels deep, possibly because it contains "
            "itself: pass a structure without such references"
        )


def encode(value: Any, prefix: str = "") -> tuple[Node, list[Tensor]]:
    """Return the tree (serializable as JSON) and the tensors of an object.

    Tensors share the memory of variables and arrays that have the file's layout. A ValueError or a TypeError names the
    object that cannot be saved.
    """
    encoder = _Encoder(prefix)
    tree = encoder.node(value, ())
    encoder.read_variables()
    return tree, encoder.tensors


class _Encoder:
    def __init__(self, prefix: str) -> None:
        self.tensors: list[Tensor] = []
        self._prefix = prefix
        # `__metadata__` is reserved by the file format.
        self._names = {"__metadata__"}
        # True while the state of an object is encoded, in which variables are saved as arrays.
        self._is_in_state = False
        self._variables: dict[int, tuple[str, Variable, list[str]]] = {}

    def node(self, value: Any, path: Path) -> Node:
        kind = kind_of_object(value)
        if kind is None:
            raise ValueError(refusal(value, name_of(path)))
        refuse_depth(path)
        if kind in _LEAVES:
            return _LEAVES[kind](self, value, path)
        if kind is Kind.VARIABLE:
            return self.array(value.read_value(), path) if self._is_in_state else self._variable(value, path)
        if kind in (Kind.STATE, Kind.STATE_DICT):
            return self._state(value, kind, path)
        if kind in (Kind.LIST, Kind.TUPLE):
            return [kind.value, [self.node(child, (*path, i)) for i, child in enumerate(value)]]
        if kind in (Kind.SET, Kind.FROZENSET):
            return [kind.value, [self.node(child, (*path, i)) for i, child in enumerate(_ordered(value))]]
        pairs = [(key, child, (*path, key)) for key, child in list(children_of(value, kind))]
        return [kind.value, [[_key(key, place), self.node(child, place)] for key, child, place in pairs]]

    def _state(self, value: Any, kind: Kind, path: Path) -> Node:
        if self._is_in_state:
            raise ValueError(
                f"{name_of(path)}: the state of an object holds a {type(value).__name__}, which has its own state: "
                "return that state from get_state, not the object"
            )
        state = value.get_state() if kind is Kind.STATE else dict(value.state_dict())
        self._is_in_state = True
        node = self.node(state, path)
        self._is_in_state = False
        return [kind.value, node]

    # --- leaves -------------------------------------------------------------------------------------------------------

    def whole(self, value: int, path: Path) -> Node:
        return value if -(1 << 63) <= value < 1 << 64 else ["int", hex(value)]

    def text(self, value: str, path: Path) -> Node:
        if len(value) <= _MOST_IN_TREE:
            return value
        return ["str", self._tensor(np.frombuffer(value.encode("utf-8", "surrogatepass"), np.uint8), path, True)]

    def binary(self, value: bytes | bytearray, path: Path) -> Node:
        kind = "bytes" if isinstance(value, bytes) else "bytearray"
        if len(value) <= _MOST_IN_TREE:
            return [kind, base64.b64encode(value).decode("ascii")]
        return [kind, None, self._tensor(np.frombuffer(bytes(value), np.uint8), path, True)]

    def array(self, value: Array, path: Path) -> Node:
        return ["array", self._tensor(value, path, False)]

    def scalar(self, value: np.generic, path: Path) -> Node:
        return ["scalar", self._tensor(np.asarray(value), path, True)]

    def tensor(self, value: Any, path: Path) -> Node:
        kind = kind_of(value)
        assert kind is not None  # only values with a kind are encoded as tensors
        plain = value.detach() if hasattr(value, "detach") else value
        return ["tensor", kind.name, self._tensor(kind.as_ndarray(plain, name_of(path)), path, not kind.is_mutable)]

    # --- tensors ------------------------------------------------------------------------------------------------------

    def _tensor(self, array: Array, path: Path, is_steady: bool) -> str:
        name = self._new_name(name_of(path))
        self._add(name, array, is_steady)
        return name

    def _add(self, name: str, array: Array, is_steady: bool) -> None:
        try:
            self.tensors.append(Tensor.of(name, array, is_steady))
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None

    def _new_name(self, name: str) -> str:
        name = f"{self._prefix}/{name}" if self._prefix and name else f"{self._prefix}{name}"
        found, number = name, 1
        while found in self._names:
            found, number = f"{name}.{number}", number + 1
        self._names.add(found)
        return found

    # --- variables ----------------------------------------------------------------------------------------------------

    def _variable(self, variable: Variable, path: Path) -> Node:
        # A variable with several names is written once.
        _, _, names = self._variables.setdefault(id(variable), (name_of(path), variable, []))
        return ["variable", sort_of(variable).value, variable.aggregation.name, names]

    def read_variables(self) -> None:
        """Read all variables of the tree at one instant, and add the names of their tensors to the nodes."""
        found = list(self._variables.values())
        values = read_atomically([variable for _, variable, _ in found])
        for (place, _, names), components in zip(found, values, strict=True):
            names.extend(self._components(place, components))

    def _components(self, place: str, components: Sequence[Array]) -> list[str]:
        names: dict[int, str] = {}
        for i, component in enumerate(components):
            if id(component) not in names:
                names[id(component)] = name = self._new_name(f"{place}/replica_{i}" if i else place)
                self._add(name, component, True)
        return [names[id(component)] for component in components]


def _key(key: Any, path: Path) -> Node:
    """Return the node of a dictionary key, which must not contain tensors."""
    kind = kind_of_object(key)
    if kind in (Kind.TUPLE, Kind.FROZENSET):
        return [kind.value, [_key(each, path) for each in (key if kind is Kind.TUPLE else _ordered(key))]]
    if kind is Kind.BYTES:
        return ["bytes", base64.b64encode(key).decode("ascii")]
    if kind is Kind.STR:
        return key
    if kind in _KEYS:
        return _LEAVES[kind](None, key, path)
    raise ValueError(
        f"{name_of(path)}: the key {key!r} of type {type(key).__name__} cannot be saved: keys must be text, bytes, "
        "Python numbers, bools, None, or tuples or frozensets of these"
    )


def _ordered(values: Any) -> list[Any]:
    """Return the elements of a set in an order independent of their hashes, if they are sortable."""
    try:
        return sorted(values)
    except TypeError:
        return list(values)


_KEYS = {Kind.NONE, Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.COMPLEX}
_LEAVES: dict[Kind, Any] = {
    **dict.fromkeys((Kind.NONE, Kind.BOOL, Kind.FLOAT), lambda _, value, path: value),
    Kind.COMPLEX: lambda _, value, path: ["complex", value.real, value.imag],
    Kind.INT: _Encoder.whole, Kind.STR: _Encoder.text, Kind.BYTES: _Encoder.binary, Kind.BYTEARRAY: _Encoder.binary,
    Kind.ARRAY: _Encoder.array, Kind.SCALAR: _Encoder.scalar, Kind.TENSOR: _Encoder.tensor,
}  # fmt: skip
