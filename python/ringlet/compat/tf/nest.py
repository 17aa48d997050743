"""tf.nest: nested structures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from ringlet import nest
from ringlet.compat.tensorflow.absent import refuser
from ringlet.values import PerReplica, ShardedVariable

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """Give the leaves of a structure, dictionaries in the order of their keys.

    Parameters
    ----------
    structure : nested structure
    expand_composites : bool, optional
        Whether to look into dataclasses, classes made by attrs, PerReplica and ShardedVariable.

    Returns
    -------
    list

    Examples
    --------
    >>> flatten({"b": 2, "a": [1, None]})
    [1, None, 2]
    """
    if not expand_composites:
        return nest.flatten_containers(structure)[0]
    return [part for leaf in nest.flatten(structure)[0] for part in _parts(leaf)]


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Call a function on every leaf, and keep the structure.

    Parameters
    ----------
    func : callable
        Takes one leaf of each structure.
    *structure : nested structure
        Of one shape.
    **kwargs
        ``expand_composites`` as in :func:`flatten`; ``check_types``: accepted, without effect.

    Returns
    -------
    nested structure

    Raises
    ------
    ValueError
        If the shapes differ, or there is no structure.
    TypeError
        If `func` cannot be called.

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
    if kwargs.get("expand_composites"):
        for other in structure[1:]:
            assert_same_structure(structure[0], other, False, True)
        rows = zip(*(flatten(each, True) for each in structure), strict=True)
        return pack_sequence_as(structure[0], [func(*row) for row in rows], True)
    leaves, shape = nest.flatten_containers(structure[0])
    columns = [nest.same_structure_leaves(shape, other) for other in structure[1:]]
    return nest.unflatten(shape, [func(*row) for row in zip(leaves, *columns, strict=True)])


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False) -> Any:
    """Put leaves into the shape of a structure.

    Parameters
    ----------
    structure : nested structure
    flat_sequence : sequence
    expand_composites : bool, optional
        As in :func:`flatten`.

    Returns
    -------
    nested structure

    Raises
    ------
    ValueError
        If there are more or fewer leaves than places.

    Examples
    --------
    >>> pack_sequence_as({"b": 0, "a": (0, 0)}, [1, 2, 3])
    {'b': 3, 'a': (1, 2)}
    """
    leaves, shape = (nest.flatten if expand_composites else nest.flatten_containers)(structure)
    num_leaves = len(flatten(structure, expand_composites))
    if len(flat_sequence) != num_leaves:
        raise ValueError(
            f"Could not pack sequence. Structure had {num_leaves} atoms, but flat_sequence had "
            f"{len(flat_sequence)} items. Structure: {structure}, flat_sequence: {flat_sequence}"
        )
    if not expand_composites:
        return nest.unflatten(shape, flat_sequence)
    values = iter(flat_sequence)
    return nest.unflatten(shape, [_packed(leaf, values) for leaf in leaves])


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Refuse structures that differ.

    Parameters
    ----------
    nest1, nest2 : nested structure
    check_types : bool, optional
        Whether containers of other classes count as different.
    expand_composites : bool, optional
        As in :func:`flatten`.

    Raises
    ------
    ValueError
        If they differ; shows both.
    TypeError
        If they differ in the classes of containers only.

    Examples
    --------
    >>> assert_same_structure([1, (2,)], [0, (0,)])
    """
    take = nest.flatten if expand_composites else nest.flatten_containers
    (leaves, shape), (others, other_shape) = take(nest1), take(nest2)
    shapes = shape, other_shape
    if shape == other_shape:
        for first, second in zip(leaves, others, strict=True) if expand_composites else ():
            if (_composite(first), len(_parts(first))) != (_composite(second), len(_parts(second))):
                raise ValueError(f"The two structures don't have the same nested structure: {first!r} and {second!r}")
        return
    is_same_but_for_types = shapes[0].paths() == shapes[1].paths()
    if is_same_but_for_types and not check_types:
        return
    kind = TypeError if is_same_but_for_types else ValueError
    raise kind(
        "The two structures don't have the same nested structure: "
        f"{nest.describe(shapes[0])} and {nest.describe(shapes[1])}, with * for each value"
    )


def is_nested(structure: Any) -> bool:
    """Tell whether a value is a list, a tuple, a dictionary or another container.

    Parameters
    ----------
    structure : object

    Returns
    -------
    bool

    Examples
    --------
    >>> is_nested([]), is_nested(1)
    (True, False)
    """
    return nest.is_nested(structure) and not nest.is_composite(structure)


def _composite(leaf: Any) -> type[Any] | None:
    return next((kind for kind in (PerReplica, ShardedVariable) if isinstance(leaf, kind)), None)


def _parts(leaf: Any) -> list[Any]:
    """The components of a composite; a leaf alone is its only one."""
    if isinstance(leaf, PerReplica):
        return flatten(leaf.values, True)
    return leaf.variables if isinstance(leaf, ShardedVariable) else [leaf]


def _packed(leaf: Any, values: Iterator[Any]) -> Any:
    """Another leaf with the next values as its components."""
    if isinstance(leaf, PerReplica):
        return PerReplica([pack_sequence_as(part, _next(values, part), True) for part in leaf.values])
    if isinstance(leaf, ShardedVariable):
        return ShardedVariable(_next(values, leaf), leaf.name)
    return next(values)


def _next(values: Iterator[Any], structure: Any) -> list[Any]:
    return list(islice(values, len(flatten(structure, True))))


__getattr__ = refuser("tf.nest", __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
