"""Decoder of a checkpoint file's tree: the inverse of :mod:`ringlet.train.encoding`."""

from __future__ import annotations

import base64
import copy
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ringlet.collectives.adapters.array_adapters import ArrayAdapter, kind_of, result_memory
from ringlet.errors import CheckpointCorruptError
from ringlet.train.checkpoint_reader import CheckpointFile, Entry
from ringlet.train.saved_variables import SavedVariable, Sort
from ringlet.train.trackable_types import Kind, children_of, kind_name, kind_of_object

Node = Any

_PAIRS = {Kind.DICT, Kind.GROUP, Kind.NAMEDTUPLE, Kind.DATACLASS}
_ITEMS: dict[Kind, Callable[[list[Any]], Any]] = {
    Kind.LIST: list, Kind.TUPLE: tuple, Kind.SET: set, Kind.FROZENSET: frozenset,
}  # fmt: skip
_SCALARS: dict[type[Any], Kind] = {
    type(None): Kind.NONE, bool: Kind.BOOL, int: Kind.INT, float: Kind.FLOAT, str: Kind.STR,
}  # fmt: skip


_LEAVES = {Kind.NONE, Kind.BOOL, Kind.INT, Kind.FLOAT, Kind.COMPLEX, Kind.STR, Kind.BYTES, Kind.BYTEARRAY}


class Malformed(Exception):
    """The tree does not have the form that :mod:`ringlet.train.encoding` writes."""


def check_tree(file: CheckpointFile, action: Callable[[], Any]) -> Any:
    """Return ``action()``; raise CheckpointCorruptError if it finds that the tree of the file is malformed."""
    try:
        return action()
    except (Malformed, RecursionError) as error:
        raise CheckpointCorruptError(
            f"the checkpoint {file.path} is damaged: its tree is invalid ({error})", file.path, 8
        ) from error


def kind_of_node(node: Node) -> Kind:
    """Return the kind of object that a node encodes."""
    if type(node) in _SCALARS:
        return _SCALARS[type(node)]
    try:
        return Kind(node[0])
    except (ValueError, TypeError, IndexError, KeyError) as error:
        raise Malformed(f"unknown node {str(node)[:100]}") from error


def children_of_node(node: Node, kind: Kind) -> list[tuple[Any, Node]]:
    """Return (key, node) for each child of a container, none for other kinds; names of fields must be strings."""
    try:
        if kind in _PAIRS:
            pairs = [(_key(key), child) for key, child in node[1]]
            if kind is not Kind.DICT and not all(isinstance(key, str) for key, _ in pairs):
                raise Malformed(f"{kind_name(kind)} has a field name that is not text")
            return pairs
        return list(enumerate(node[1])) if kind in _ITEMS else []
    except (ValueError, TypeError, IndexError, KeyError) as error:
        raise Malformed(f"invalid {kind.value} {str(node)[:100]}") from error


def _key(node: Node) -> Any:
    kind = kind_of_node(node)
    if kind in (Kind.TUPLE, Kind.FROZENSET):
        return _ITEMS[kind]([_key(child) for _, child in children_of_node(node, kind)])
    if kind in _LEAVES:
        return _leaf(None, node, kind)
    raise Malformed(f"{kind_name(kind)} cannot be a key")


def _leaf(file: CheckpointFile | None, node: Node, kind: Kind) -> Any:
    """Return a number, text, bytes or None; without `file`, only a value stored in the tree."""
    if type(node) in _SCALARS:
        return node
    try:
        if kind is Kind.INT:
            return int(node[1], 16)
        if kind is Kind.COMPLEX:
            return complex(float(node[1]), float(node[2]))
        content = base64.b64decode(node[1], validate=True) if kind is not Kind.STR and node[1] is not None else None
        if content is None and file is not None:
            content = file.read(_entry(file, node, -1)).tobytes()
        if content is None:
            raise Malformed(f"invalid key {str(node)[:100]}")
        if kind is Kind.STR:
            return content.decode("utf-8", "surrogatepass")
        return content if kind is Kind.BYTES else bytearray(content)
    except (ValueError, TypeError, IndexError) as error:
        if isinstance(error, CheckpointCorruptError):
            raise
        raise Malformed(f"invalid {kind.value} {str(node)[:100]}") from error


def entries_of(file: CheckpointFile, node: Node) -> Iterator[Entry]:
    """Yield the tensors of a node and its descendants."""
    kind = kind_of_node(node)
    if kind is Kind.VARIABLE:
        yield from saved_variable(file, node).entries
    elif kind in (Kind.ARRAY, Kind.SCALAR, Kind.TENSOR):
        yield _entry(file, node, -1)
    elif kind in (Kind.STATE, Kind.STATE_DICT):
        yield from entries_of(file, inner(node))
    for _, child in children_of_node(node, kind):
        yield from entries_of(file, child)


def inner(node: Node) -> Node:
    """Return the node that encodes the state of an object."""
    try:
        return node[1]
    except IndexError as error:
        raise Malformed(f"the object {node} has no state") from error


def _entry(file: CheckpointFile, node: Node, place: int) -> Entry:
    try:
        return file.entries[node[place]]
    except (KeyError, TypeError, IndexError) as error:
        raise Malformed(f"no tensor belongs to the node {str(node)[:100]}") from error


def saved_variable(file: CheckpointFile, node: Node) -> SavedVariable:
    """Return the saved variable that a node encodes."""
    try:
        _, sort, aggregation, names = node
        entries = [file.entries[name] for name in names]
        if not entries or not isinstance(aggregation, str):
            raise Malformed(f"invalid variable {str(node)[:100]}")
        return SavedVariable(Sort(sort), aggregation, entries)
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed(f"invalid variable {str(node)[:100]}") from error


def decode(file: CheckpointFile, node: Node, like: Any = None) -> Any:
    """Return the value of a node without variables and groups, in newly allocated memory.

    The current value, `like`, determines the class of a dataclass, namedtuple or array; a ValueError is raised for a
    dataclass or namedtuple if `like` does not fit the node.
    """
    kind = kind_of_node(node)
    if kind in _LEAVES:
        return _leaf(file, node, kind)
    if kind is Kind.ARRAY:
        return file.read(_entry(file, node, 1))
    if kind is Kind.SCALAR:
        return file.read(_entry(file, node, 1))[()]
    if kind is Kind.TENSOR:
        return _tensor(file, node, like)
    if kind in (Kind.STATE, Kind.STATE_DICT):
        raise Malformed("a plain value contains an object with its own state")
    return _container(file, node, kind, like)


def _tensor(file: CheckpointFile, node: Node, like: Any) -> Any:
    """Return an array of the library of `like`, else of PyTorch if saved from it and imported, else of NumPy."""
    entry = _entry(file, node, 2)
    writeable, readable = result_memory(entry.shape, entry.form.dtype.newbyteorder("="))
    file.read_into(entry, writeable)
    kind = kind_of(like) or _kind_named(node[1])
    if kind is None:
        return writeable
    return kind.from_ndarray(writeable if kind.is_mutable else readable, like)


def _kind_named(name: Any) -> ArrayAdapter | None:
    """Return PyTorch's array adapter if it has this name and PyTorch is imported; otherwise None."""
    if name == "torch.Tensor" and "torch" in sys.modules:
        from ringlet.collectives.adapters.torch_arrays import TorchAdapter  # imported only if such an array was saved

        return TorchAdapter()
    return None


def _container(file: CheckpointFile, node: Node, kind: Kind, like: Any) -> Any:
    children = children_of_node(node, kind)
    if kind in _ITEMS:
        likes = list(like) if isinstance(like, (list, tuple)) and len(like) == len(children) else [None] * len(children)
        values = [decode(file, child, each) for (_, child), each in zip(children, likes, strict=True)]
        try:
            return _ITEMS[kind](values)
        except TypeError as error:  # an element is unhashable
            raise Malformed(f"{kind_name(kind)} has an invalid element ({error})") from error
    if kind is Kind.DICT:
        known = like if isinstance(like, dict) else {}
        try:
            return {key: decode(file, child, known.get(key)) for key, child in children}
        except TypeError as error:
            raise Malformed(f"a dict has an unhashable key ({error})") from error
    if kind not in (Kind.NAMEDTUPLE, Kind.DATACLASS):
        raise Malformed(f"a plain value contains {kind_name(kind)}")
    fields = {name: decode(file, child, getattr(like, name, None)) for name, child in children}
    return rebuilt(like, fields, kind)


def rebuilt(like: Any, fields: dict[str, Any], kind: Kind) -> Any:
    """Return a copy of `like` with the values `fields`; raise a ValueError unless it has this kind and these fields."""
    own = [name for name, _ in children_of(like, kind)] if kind_of_object(like) is kind else None
    if own is None or set(own) != set(fields):
        raise ValueError(
            f"the file holds {kind_name(kind)} with the fields {', '.join(fields)}, but the program has "
            f"{'no object that determines its class' if own is None else f'one with {chr(44).join(own)}'}: set the "
            "attribute to such an object before restoring, or save such objects as dictionaries"
        )
    if kind is Kind.NAMEDTUPLE:
        return type(like)(**fields)
    twin = copy.copy(like)
    for name, value in fields.items():
        object.__setattr__(twin, name, value)  # works for frozen dataclasses; the copy is not shared yet
    return twin
