"""Nested structures: what may stand around a value in arguments and results.

Containers: lists, tuples, namedtuples, dictionaries (walked in the order of their keys, as ``tf.nest`` does), deques,
subclasses of them, other mappings, and every node type that was registered, here or with optree itself. Composites:
dataclasses and classes made by attrs. Anything else is a leaf, ``None`` too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import optree
from optree import PyTreeSpec

from ringlet.pytree_nodes import Kind, composite_kind, container_kind
from ringlet.structure_cache import dictionary_shape, row_shape

__all__ = [
    "PLAIN_TYPES",
    "PyTreeSpec",
    "describe",
    "flatten",
    "flatten_containers",
    "is_composite",
    "is_nested",
    "map_structure",
    "map_until",
    "register",
    "same_structure_leaves",
    "unflatten",
]

# optree keeps one registry per namespace; nodes registered globally are seen in all of them. In the second one of ours
# composites are leaves, so that an object is looked into only where that changes anything.
NAMESPACE = "ringlet"
CONTAINERS = "ringlet.containers"

# Types that are never nodes: knowing them saves a walk, which costs more than a small step function.
PLAIN_TYPES = frozenset({type(None), bool, int, float, complex, str, bytes})

# Types that were looked at, leaves and composites; each of the two; nodes that were registered without being asked for.
# A program that makes classes without end must not fill the memory with leaves: the first two are emptied at times. A
# class that is a node stays registered, and alive, until the program ends: about 34 KB for each new dataclass.
_seen: set[type[Any]] = set(PLAIN_TYPES)
_leaf_types: set[type[Any]] = set(PLAIN_TYPES)
_composites: set[type[Any]] = set()
_automatic: set[type[Any]] = set()
_MOST_SEEN = 4096

# How much of a structure a message shows.
_MOST_CHARACTERS = 500
_lock = threading.RLock()


def register(
    node_type: type[Any],
    flatten_node: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_node: Callable[[Any, Sequence[Any]], Any],
) -> None:
    """Make a class a nested structure, so that values inside it are seen.

    Parameters
    ----------
    node_type : type
        The class. Its subclasses are not included.
    flatten_node : callable
        Takes an instance; gives its children and a hashable object with everything else that it holds.
    unflatten_node : callable
        Takes that other object and as many new children; gives an instance. The children may be of any type, so it must
        not check them.

    Raises
    ------
    ValueError
        If the class is registered already.

    Examples
    --------
    >>> class State:
    ...     def __init__(self, weights, name):
    ...         self.weights, self.name = weights, name
    >>> register(State, lambda s: ([s.weights], s.name), lambda name, children: State(*children, name))
    >>> map_structure(lambda x: x + 1, State(4, "layer")).weights
    5
    """
    with _lock:
        for namespace in (NAMESPACE, CONTAINERS) if node_type in _automatic else ():
            if optree.register_pytree_node.get(node_type, namespace=namespace) is not None:
                optree.unregister_pytree_node(node_type, namespace=namespace)
        optree.register_pytree_node(
            node_type,
            flatten_node,
            lambda rest, children: unflatten_node(rest, tuple(children)),
            namespace=NAMESPACE,
        )
        for types in (_leaf_types, _seen, _composites, _automatic):
            types.discard(node_type)


def _learn(leaves: Iterable[Any]) -> None:
    """Make nodes of those leaves whose types turn out to be structures, and remember the types of all."""
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
    asked_for = optree.register_pytree_node.get(node_type, namespace=NAMESPACE)
    if asked_for is not None:
        take, put = asked_for.flatten_func, asked_for.unflatten_func
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
    # Rows and dictionaries of leaves, the most frequent structures of all, take a fifth of the time without a walk.
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
    """Take a nested structure apart into its leaves and its shape.

    Parameters
    ----------
    structure : nested structure

    Returns
    -------
    leaves : list
        In the order of :func:`unflatten`; dictionaries give theirs in key order.
    shape : PyTreeSpec
        What remains when the leaves are taken out.

    Examples
    --------
    >>> leaves, shape = flatten({"b": 2, "a": (1, None)})
    >>> leaves
    [1, None, 2]
    >>> unflatten(shape, ["x", "y", "z"])
    {'b': 'z', 'a': ('x', 'y')}
    """
    return _flatten(structure, NAMESPACE)


def flatten_containers(structure: Any) -> tuple[list[Any], PyTreeSpec]:
    """Take a nested structure apart as :func:`flatten` does, but leave composites whole.

    Parameters
    ----------
    structure : nested structure

    Returns
    -------
    leaves : list
        Composites, such as dataclasses, among them.
    shape : PyTreeSpec

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class State:
    ...     step: int
    >>> flatten_containers([State(3)])[0], flatten([State(3)])[0]
    ([State(step=3)], [3])
    """
    return _flatten(structure, CONTAINERS)


def is_composite(value: Any) -> bool:
    """Tell whether a leaf of :func:`flatten_containers` is an object with fields that :func:`flatten` walks.

    Parameters
    ----------
    value : object

    Returns
    -------
    bool

    Examples
    --------
    >>> is_composite(5)
    False
    """
    return type(value) in _composites


def unflatten(shape: PyTreeSpec, leaves: Iterable[Any]) -> Any:
    """Put leaves into a shape that :func:`flatten` gave.

    Parameters
    ----------
    shape : PyTreeSpec
    leaves : iterable
        As many as the shape has places.

    Returns
    -------
    nested structure
        New containers around the same leaves.

    Examples
    --------
    >>> unflatten(flatten([0, (0, 0)])[1], "abc")
    ['a', ('b', 'c')]
    """
    return shape.unflatten(leaves)


class _Leaf:
    def __repr__(self) -> str:
        return "*"


def describe(shape: PyTreeSpec) -> str:
    """Write a shape as its containers would be written, with a star for each leaf; a long one is cut off.

    Parameters
    ----------
    shape : PyTreeSpec

    Returns
    -------
    str

    Examples
    --------
    >>> describe(flatten({"a": (1, [2])})[1])
    "{'a': (*, [*])}"
    """
    try:
        text = repr(unflatten(shape, [_Leaf()] * shape.num_leaves))
    except Exception:  # an object of the user's that cannot be written without its values
        text = str(shape)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."


def same_structure_leaves(shape: PyTreeSpec, structure: Any) -> list[Any]:
    """Take apart a structure that must have a known shape.

    Parameters
    ----------
    shape : PyTreeSpec
        The shape that another structure had.
    structure : nested structure
        Where the shape has a leaf, anything may stand, and is given back whole.

    Returns
    -------
    list
        As many leaves as the shape has places.

    Raises
    ------
    ValueError
        If the structure differs above a leaf of the shape.

    Examples
    --------
    >>> same_structure_leaves(flatten((1, 2))[1], ("a", ["b"]))
    ['a', ['b']]
    """
    if shape is row_shape(structure):
        return list(structure)
    leaves: list[Any] = shape.flatten_up_to(structure)
    return leaves


def is_nested(value: Any) -> bool:
    """Tell whether a value is a nested structure and not a leaf.

    Parameters
    ----------
    value : object

    Returns
    -------
    bool

    Examples
    --------
    >>> is_nested([]), is_nested({"a": 1}), is_nested(None), is_nested("text")
    (True, True, False, False)
    """
    if type(value) in PLAIN_TYPES:
        return False
    if not optree.tree_is_leaf(value, none_is_leaf=True, namespace=NAMESPACE):
        return True
    if type(value) in _seen:
        return False
    _learn([value])
    return not optree.tree_is_leaf(value, none_is_leaf=True, namespace=NAMESPACE)


def map_structure(function: Callable[..., Any], structure: Any, *more: Any) -> Any:
    """Call a function on every leaf and keep the structure.

    Parameters
    ----------
    function : callable
        Takes one leaf of each structure.
    structure : nested structure
    *more : nested structure
        Of the same shape.

    Returns
    -------
    nested structure
        Of the shape of the first one.

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> map_structure(lambda a, b: a + b, {"x": [1, 2]}, {"x": [10, 20]})
    {'x': [11, 22]}
    """
    leaves, shape = flatten(structure)
    columns = [same_structure_leaves(shape, other) for other in more]
    return unflatten(shape, [function(*row) for row in zip(leaves, *columns, strict=True)])


def map_until(function: Callable[[Any], Any], structure: Any, is_leaf: Callable[[Any], bool]) -> Any:
    """Call a function on every leaf and keep the structure, where some containers are leaves.

    Parameters
    ----------
    function : callable
        Takes a leaf.
    structure : nested structure
    is_leaf : callable
        Takes a value; tells whether it is to be left whole, whatever it is.

    Returns
    -------
    nested structure

    Examples
    --------
    >>> map_until(sum, {"x": [1, 2], "y": ([3],)}, lambda value: isinstance(value, list))
    {'x': 3, 'y': (3,)}
    """
    while True:
        leaves, shape = optree.tree_flatten(structure, is_leaf, none_is_leaf=True, namespace=NAMESPACE)
        unknown = [leaf for leaf in leaves if type(leaf) not in _seen and not is_leaf(leaf)]
        if not unknown:
            return unflatten(shape, map(function, leaves))
        _learn(unknown)
