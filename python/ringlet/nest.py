"""Nested structures of arguments and results: flattening, rebuilding, and registration of node types.

Containers are lists, tuples, namedtuples, dictionaries (in key order, as in ``tf.nest``), deques, subclasses of these,
``UserList``, most other mappings, classes with ``__tf_flatten__``, and every node type registered here or in optree.
Composites are dataclasses and attrs classes whose instances can be rebuilt. Any other object is a leaf, including
arrays and ``None``.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import optree
from optree import PyTreeSpec

from ringlet.pytree_nodes import Kind, composite_kind, container_kind

__all__ = [
    "PLAIN_TYPES",
    "PyTreeSpec",
    "describe",
    "flatten",
    "flatten_containers",
    "flatten_until",
    "is_composite",
    "is_nested",
    "map_structure",
    "map_until",
    "register",
    "same_structure_leaves",
    "unflatten",
]

CachedShape = tuple[PyTreeSpec, "operator.itemgetter[Any] | None"]

# Maximum length of the lists and tuples whose shapes are cached, so that the cache stays small.
_LONGEST_ROW = 256

# Shapes of dictionaries by their keys; bounded, for programs with new keys in every step. Only string
# keys are cached: distinct keys of other types, such as 1 and True, may compare equal.
_dictionaries: dict[tuple[Any, ...], CachedShape] = {}
_MOST_DICTIONARIES = 256
_KEY_TYPES = frozenset({str})


def row_shape(structure: Any) -> PyTreeSpec | None:
    """Return the cached shape of a list or tuple of leaves; None for other types and for long sequences."""
    kind = type(structure)
    if (kind is list or kind is tuple) and len(structure) <= _LONGEST_ROW:
        return _row_shape(kind is list, len(structure))
    return None


@cache
def _row_shape(is_list: bool, count: int) -> PyTreeSpec:
    return _shape_of([0] * count if is_list else (0,) * count)


def _shape_of(structure: Any) -> PyTreeSpec:
    return optree.tree_structure(structure, none_is_leaf=True)


def dictionary_shape(dictionary: dict[Any, Any]) -> CachedShape | None:
    """Return the cached shape of a dictionary of leaves, and a getter of its leaves; None if a key is not a string.

    The getter takes a dictionary with the same keys; it is None if the values are in the order of the leaves.
    """
    keys = tuple(dictionary)
    if not _KEY_TYPES.issuperset(map(type, keys)):
        return None
    return _dictionaries.get(keys) or _cache_shape(keys)


def _cache_shape(keys: tuple[Any, ...]) -> CachedShape:
    # Numbers in place of the leaves show the order in which optree visits them.
    numbered: Any = dict(zip(keys, range(len(keys)), strict=True))
    numbers: list[int] = optree.tree_leaves(numbered, none_is_leaf=True)
    is_sorted = numbers == sorted(numbers)
    shape = _shape_of(numbered), None if is_sorted else operator.itemgetter(*(keys[number] for number in numbers))
    if len(_dictionaries) >= _MOST_DICTIONARIES:
        _dictionaries.clear()
    _dictionaries[keys] = shape
    return shape


# optree has one registry per namespace; globally registered nodes belong to every namespace. In the second namespace
# composites are leaves, so that their fields are visited only if necessary.
NAMESPACE = "ringlet"
CONTAINERS = "ringlet.containers"

# Types that are never nodes: checking for them avoids a walk, which costs more than a small step function.
PLAIN_TYPES = frozenset({type(None), bool, int, float, complex, str, bytes})

# `_seen` and `_leaf_types` are cleared at intervals, so that programs that create classes continuously do not fill the
# memory. A node type stays registered, and alive, until the program ends: about 34 KB for a dataclass.
_seen: set[type[Any]] = set(PLAIN_TYPES)  # examined types that are leaves or composites
_leaf_types: set[type[Any]] = set(PLAIN_TYPES)
_composites: set[type[Any]] = set()
_automatic: set[type[Any]] = set()  # types registered without a call of register()
_MOST_SEEN = 4096

# Maximum length of the description of a structure in a message.
_MOST_CHARACTERS = 500
_lock = threading.RLock()


def register(
    node_type: type[Any],
    flatten_node: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_node: Callable[[Any, Sequence[Any]], Any],
) -> None:
    """Register a class, but not its subclasses, as a nested structure, so that its contents are flattened.

    `flatten_node` returns an instance's children and a hashable object with the remaining state. `unflatten_node` takes
    that object and children, which may have any type and must not be checked. Raises ValueError for a registered class.
    """
    with _lock:
        for namespace in (NAMESPACE, CONTAINERS) if node_type in _automatic else ():
            if optree.register_pytree_node.get(node_type, namespace=namespace) is not None:
                optree.unregister_pytree_node(node_type, namespace=namespace)
        optree.register_pytree_node(
            node_type, flatten_node, lambda rest, children: unflatten_node(rest, tuple(children)), namespace=NAMESPACE
        )
        for types in (_leaf_types, _seen, _composites, _automatic):
            types.discard(node_type)


def _learn(leaves: Iterable[Any]) -> None:
    """Register the types of leaves that are structures, and cache the types of all leaves."""
    with _lock:
        if len(_seen) > _MOST_SEEN:
            _leaf_types.intersection_update(PLAIN_TYPES)
            _seen.clear()
            _seen.update(PLAIN_TYPES | _composites)
        for leaf in leaves:
            if type(leaf) not in _seen:
                _learn_type(leaf)


def _learn_type(leaf: Any) -> None:
    node_type = type(leaf)
    if optree.register_pytree_node.get(node_type, namespace=CONTAINERS) is not None:
        return
    registered = optree.register_pytree_node.get(node_type, namespace=NAMESPACE)
    if registered is not None:
        take, put = registered.flatten_func, registered.unflatten_func
        optree.register_pytree_node(node_type, take, put, namespace=CONTAINERS)
        return
    container = container_kind(node_type)
    if container is not None:
        _register_kind(node_type, container, NAMESPACE, CONTAINERS)
        return
    composite = composite_kind(leaf)
    if composite is not None:
        _register_kind(node_type, composite, NAMESPACE)
        _composites.add(node_type)
    else:
        _leaf_types.add(node_type)
    _seen.add(node_type)


def _register_kind(node_type: type[Any], kind: Kind, *namespaces: str) -> None:
    for namespace in namespaces:
        optree.register_pytree_node(node_type, kind.take, kind.put, namespace=namespace)
    _automatic.add(node_type)


def _flatten(structure: Any, namespace: str) -> tuple[list[Any], PyTreeSpec]:
    # Fast path for flat tuples, lists and dictionaries, the most frequent structures: five times faster than recursion.
    kind = type(structure)
    if kind is dict:
        if _leaf_types.issuperset(map(type, structure.values())) and (known := dictionary_shape(structure)):
            shape, in_order = known
            return list(structure.values() if in_order is None else in_order(structure)), shape
    elif (kind is list or kind is tuple) and _leaf_types.issuperset(map(type, structure)):
        row = row_shape(structure)
        if row is not None:
            return list(structure), row
    while True:
        leaves, shape = optree.tree_flatten(structure, none_is_leaf=True, namespace=namespace)
        if _seen.issuperset(map(type, leaves)):
            return leaves, shape
        _learn(leaves)


def flatten(structure: Any) -> tuple[list[Any], PyTreeSpec]:
    """Return the leaves of a nested structure, with dictionaries in key order, and its shape."""
    return _flatten(structure, NAMESPACE)


def flatten_containers(structure: Any) -> tuple[list[Any], PyTreeSpec]:
    """Flatten as :func:`flatten` does, but keep composites, such as dataclasses, as leaves."""
    return _flatten(structure, CONTAINERS)


def is_composite(value: Any) -> bool:
    """Return whether a leaf of :func:`flatten_containers` is a composite, whose fields :func:`flatten` walks."""
    return type(value) in _composites


def unflatten(shape: PyTreeSpec, leaves: Iterable[Any]) -> Any:
    """Return a new structure with a shape from :func:`flatten` and the given leaves."""
    return shape.unflatten(leaves)


class _Leaf:
    def __repr__(self) -> str:
        return "*"


def describe(shape: PyTreeSpec) -> str:
    """Return a shape as text, with a star for each leaf; long text is truncated."""
    try:
        text = repr(unflatten(shape, [_Leaf()] * shape.num_leaves))
    except Exception:  # the repr of a user's class may fail without its values
        text = str(shape)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."


def same_structure_leaves(shape: PyTreeSpec, structure: Any) -> list[Any]:
    """Return the leaves of a structure; raise ValueError if its shape differs from `shape`.

    An object at the position of a leaf is returned whole, even if it is nested.
    """
    if shape is row_shape(structure):
        return list(structure)
    leaves: list[Any] = shape.flatten_up_to(structure)
    return leaves


def is_nested(value: Any) -> bool:
    """Return whether a value is a nested structure, not a leaf."""
    if type(value) in PLAIN_TYPES:
        return False
    if not optree.tree_is_leaf(value, none_is_leaf=True, namespace=NAMESPACE):
        return True
    if type(value) in _seen:
        return False
    _learn([value])
    return not optree.tree_is_leaf(value, none_is_leaf=True, namespace=NAMESPACE)


def map_structure(function: Callable[..., Any], structure: Any, *more: Any) -> Any:
    """Call a function on the corresponding leaves of structures; return the results in the same structure."""
    leaves, shape = flatten(structure)
    columns = [same_structure_leaves(shape, other) for other in more]
    return unflatten(shape, [function(*row) for row in zip(leaves, *columns, strict=True)])


def flatten_until(structure: Any, is_leaf: Callable[[Any], bool]) -> tuple[list[Any], PyTreeSpec]:
    """Flatten a structure; containers for which `is_leaf` returns True are leaves, too."""
    while True:
        leaves, shape = optree.tree_flatten(structure, is_leaf, none_is_leaf=True, namespace=NAMESPACE)
        unknown = [leaf for leaf in leaves if type(leaf) not in _seen and not is_leaf(leaf)]
        if not unknown:
            return leaves, shape
        _learn(unknown)


def map_until(function: Callable[[Any], Any], structure: Any, is_leaf: Callable[[Any], bool]) -> Any:
    """Call a function on every leaf of :func:`flatten_until`; return the results in the same structure."""
    leaves, shape = flatten_until(structure, is_leaf)
    return unflatten(shape, map(function, leaves))
