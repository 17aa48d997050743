"""Nested structures: what may stand around a value in arguments and results.

Lists, tuples, namedtuples, dictionaries (walked in the order of their keys, as ``tf.nest`` does), ``OrderedDict``,
``defaultdict``, ``deque`` and every node type that was registered, here or with optree itself. Anything else is a leaf,
``None`` too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import optree
from optree import PyTreeSpec

__all__ = ["PyTreeSpec", "flatten", "is_nested", "map_structure", "register", "same_structure_leaves", "unflatten"]

# optree keeps one registry per namespace; nodes registered globally are seen in all of them.
NAMESPACE = "ringlet"

# Types that are never nodes: knowing them saves a walk, which costs more than a small step function.
PLAIN_TYPES = frozenset({type(None), bool, int, float, complex, str, bytes})


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
    optree.register_pytree_node(
        node_type,
        flatten_node,
        lambda rest, children: unflatten_node(rest, tuple(children)),
        namespace=NAMESPACE,
    )


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
    leaves, shape = optree.tree_flatten(structure, none_is_leaf=True, namespace=NAMESPACE)
    return leaves, shape


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
