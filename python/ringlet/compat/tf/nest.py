"""``tf.nest``: nested structures."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from ringlet import nest
from ringlet.compat.tensorflow.absent import absent_getter
from ringlet.module_names import list_public
from ringlet.values import IndexedSlices, PerReplica, ShardedVariable

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]


class _Components:
    """A node that stands for an object of this library in a structure; its children are the parts of the object."""

    def __init__(self, kind: type[Any], parts: Sequence[Any]) -> None:
        self.kind = kind
        self.parts = tuple(parts)


def _composite(kind: type[Any], parts: Sequence[Any]) -> Any:
    return kind(*parts) if kind is IndexedSlices else kind(parts)


nest.register(_Components, lambda node: (node.parts, node.kind), _composite)

# Classes, besides dataclasses, that expand_composites expands, and functions that return their components.
_PARTS: dict[type[Any], Callable[[Any], Sequence[Any]]] = {
    IndexedSlices: lambda rows: [part for part in (rows.values, rows.indices, rows.dense_shape) if part is not None],
    PerReplica: lambda value: value.values,
    ShardedVariable: lambda variable: variable.variables,
}


def _expanded(structure: Any) -> Any:
    def parts(leaf: Any) -> Any:
        take = _PARTS.get(type(leaf))
        return leaf if take is None else _Components(type(leaf), take(leaf))

    return nest.map_structure(parts, structure)


def _taken(structure: Any, expand_composites: bool) -> tuple[list[Any], nest.PyTreeSpec]:
    return nest.flatten(_expanded(structure)) if expand_composites else nest.flatten_containers(structure)


def _walk(structure: Any, expand_composites: bool) -> tuple[list[Any], nest.PyTreeSpec]:
    """Flatten a structure; an `OrderedDict` is a leaf, because optree does not sort its keys."""

    def is_leaf(value: Any) -> bool:
        return type(value) is OrderedDict or (not expand_composites and nest.is_composite(value))

    return nest.flatten_until(structure, is_leaf)


def _leaves(structure: Any, expand_composites: bool) -> list[Any]:
    leaves, _ = _walk(structure, expand_composites)
    if OrderedDict not in map(type, leaves):
        return leaves
    # An OrderedDict is converted to a plain dictionary, whose leaves are in key order.
    parts = (_leaves({**leaf}, expand_composites) if type(leaf) is OrderedDict else [leaf] for leaf in leaves)
    return list(chain.from_iterable(parts))


def _packed(structure: Any, flat: Iterator[Any], expand_composites: bool) -> Any:
    def packed(leaf: Any) -> Any:
        if type(leaf) is not OrderedDict:
            return next(flat)
        values = _packed({**leaf}, flat, expand_composites)
        return OrderedDict((key, values[key]) for key in leaf)

    leaves, shape = _walk(structure, expand_composites)
    return nest.unflatten(shape, [packed(leaf) for leaf in leaves])


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """Return the leaves of a structure; every dictionary, including `OrderedDict`, is walked in sorted key order.

    Parameters
    ----------
    structure : nested structure
    expand_composites : bool, optional
        Whether to expand dataclasses, attrs classes, PerReplica, ShardedVariable and IndexedSlices.

    Returns
    -------
    list

    Examples
    --------
    >>> flatten({"b": 2, "a": [1, None]})
    [1, None, 2]
    """
    return _leaves(_expanded(structure) if expand_composites else structure, expand_composites)


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Call a function on every leaf and return the results in the same structure.

    Parameters
    ----------
    func : callable
        Takes one leaf of each structure.
    *structure : nested structure
        One or more structures of the same form.
    **kwargs
        ``expand_composites``: as for :func:`flatten`. ``check_types``: accepted and ignored.

    Returns
    -------
    nested structure

    Raises
    ------
    ValueError
        If the structures differ, no structure is given, or a keyword is unknown.
    TypeError
        If `func` is not callable.

    Examples
    --------
    >>> map_structure(lambda x, y: x + y, (1, [2]), (10, [20]))
    (11, [22])
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    unknown = kwargs.keys() - {"check_types", "expand_composites"}
    if unknown:
        raise ValueError(
            f"Only valid keyword arguments are `check_types` and `expand_composites`, not: {sorted(unknown)}"
        )
    expands = bool(kwargs.get("expand_composites"))
    leaves, shape = _taken(structure[0], expands)
    others = map(_expanded, structure[1:]) if expands else structure[1:]
    columns = [nest.same_structure_leaves(shape, other) for other in others]
    return nest.unflatten(shape, [func(*row) for row in zip(leaves, *columns, strict=True)])


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False) -> Any:
    """Return a structure of the form of `structure`, with the leaves of a flat sequence.

    Parameters
    ----------
    structure : nested structure
    flat_sequence : sequence
    expand_composites : bool, optional
        As for :func:`flatten`.

    Returns
    -------
    nested structure

    Raises
    ------
    ValueError
        If the number of leaves differs.

    Examples
    --------
    >>> pack_sequence_as({"b": 0, "a": (0, 0)}, [1, 2, 3])
    {'b': 3, 'a': (1, 2)}
    """
    given = _expanded(structure) if expand_composites else structure
    leaves, shape = _walk(given, expand_composites)
    has_ordered = OrderedDict in map(type, leaves)
    count = len(_leaves(given, expand_composites)) if has_ordered else len(leaves)
    if len(flat_sequence) != count:
        raise ValueError(
            f"Could not pack sequence. Structure had {count} atoms, but flat_sequence had {len(flat_sequence)} items. "
            f"Structure: {structure}, flat_sequence: {flat_sequence}"
        )
    return (
        _packed(given, iter(flat_sequence), expand_composites) if has_ordered else nest.unflatten(shape, flat_sequence)
    )


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raise an error if two structures differ.

    Parameters
    ----------
    nest1, nest2 : nested structure
    check_types : bool, optional
        Whether containers of different classes count as a difference.
    expand_composites : bool, optional
        As for :func:`flatten`.

    Raises
    ------
    ValueError
        If the structures differ; the message shows both structures.
    TypeError
        If only the classes of containers differ.

    Examples
    --------
    >>> assert_same_structure([1, (2,)], [0, (0,)])
    """
    shapes = _taken(nest1, expand_composites)[1], _taken(nest2, expand_composites)[1]
    if shapes[0] == shapes[1]:
        return
    is_same_but_for_types = shapes[0].paths() == shapes[1].paths()
    if is_same_but_for_types and not check_types:
        return
    kind = TypeError if is_same_but_for_types else ValueError
    raise kind(
        f"The two structures don't have the same nested structure: {nest.describe(shapes[0])} and "
        f"{nest.describe(shapes[1])}, where * stands for a value"
    )


def is_nested(seq: Any) -> bool:
    """Return whether a value is a container: a list, a tuple, a dictionary or another registered class.

    Parameters
    ----------
    seq : object

    Returns
    -------
    bool

    Examples
    --------
    >>> is_nested([]), is_nested(1)
    (True, False)
    """
    return nest.is_nested(seq) and not nest.is_composite(seq)


__getattr__ = absent_getter("tf.nest", __all__)
__dir__ = list_public(__name__)
