"""Between nested structures of distributed values and the structures that single replicas see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ringlet import nest
from ringlet.values.base import DistributedValues
from ringlet.values.per_replica import PerReplica

__all__ = ["check_components", "regroup", "select_replica", "split_arguments"]

# Leaves that need no walk to be known as such.
_LEAF_TYPES = nest.PLAIN_TYPES | {np.ndarray, np.float32, np.float64, np.int32, np.int64}

Rows = list[tuple[Any, ...]]


def regroup(
    values: Sequence[Any], wrap: Callable[[Sequence[Any]], Any] = PerReplica, *, always_wrap: bool = False
) -> Any:
    """Turn one nested structure per replica into one structure of distributed values.

    Parameters
    ----------
    values : sequence
        One structure for each replica, all of the same shape. Composites such as dataclasses are structures, too,
        unless all replicas hold the identical object, or it contains itself. Components of one distributed variable
        become that variable.
    wrap : callable
        Makes a distributed value of the components; :class:`~ringlet.values.PerReplica` unless given.
    always_wrap : bool
        Wrap even where all replicas hold the identical object, which otherwise comes back as itself.

    Returns
    -------
    nested structure
        Of the shape that replica 0 has.

    Raises
    ------
    ValueError
        If another replica's structure differs.

    Examples
    --------
    >>> regroup([("same", 1.5), ("same", 2.5)])
    ('same', PerReplica:{
      0: 1.5,
      1: 2.5
    })
    """
    first = values[0]
    if type(first) in _LEAF_TYPES:
        return _regroup_leaf(values, wrap, always_wrap)
    leaves, shape = nest.flatten_containers(first)
    if len(leaves) == 1 and leaves[0] is first:
        return _regroup_leaf(values, wrap, always_wrap)
    return _regroup_columns(leaves, shape, values, wrap, always_wrap)


def _regroup_columns(
    leaves: list[Any],
    shape: nest.PyTreeSpec,
    values: Sequence[Any],
    wrap: Callable[[Sequence[Any]], Any],
    always_wrap: bool,
) -> Any:
    columns = [leaves, *(_leaves_like(shape, value, i) for i, value in enumerate(values[1:], 1))]
    grouped = [
        # Arrays that differ need none of what follows; there may be many.
        wrap(column)
        if column[0] is not column[-1] and type(column[0]) in _LEAF_TYPES
        else _regroup_leaf(column, wrap, always_wrap)
        for column in zip(*columns, strict=True)
    ]
    return nest.unflatten(shape, grouped)


def _regroup_leaf(values: Sequence[Any], wrap: Callable[[Sequence[Any]], Any], always_wrap: bool) -> Any:
    first = values[0]
    is_plain = type(first) in _LEAF_TYPES
    # Asked of the class first: other objects may have attributes of any name.
    if not is_plain and hasattr(type(first), "distribute_strategy"):
        variable = _variable_of(values)
        if variable is not None:
            return variable
    if not always_wrap:
        for value in values:
            if value is not first:
                break
        else:
            return first
    if not is_plain and nest.is_composite(first) and (parts := _parts(first)) is not None:
        return _regroup_columns(*parts, values, wrap, always_wrap)
    return wrap(values)


def _variable_of(components: Sequence[Any]) -> Any:
    """The distributed variable that all of these are components of; None for anything else."""
    references = [getattr(component, "_container", None) for component in components]
    variables = [None if reference is None else reference() for reference in references]
    return variables[0] if all(variable is variables[0] for variable in variables) else None


def _parts(composite: Any) -> tuple[list[Any], nest.PyTreeSpec] | None:
    """What a composite consists of; None if it contains itself, such as a node of a graph that knows its neighbours."""
    try:
        return nest.flatten(composite)
    except RecursionError:
        return None


def _shape_of(value: Any) -> nest.PyTreeSpec:
    return (_parts(value) or nest.flatten_containers(value))[1]


def _leaves_like(shape: nest.PyTreeSpec, value: Any, replica: int) -> list[Any]:
    try:
        return nest.same_structure_leaves(shape, value)
    except ValueError as error:
        raise ValueError(
            f"the replicas gave different structures: replica 0 {nest.describe(shape)}, replica {replica} "
            f"{nest.describe(_shape_of(value))}, with * for each value. Return the same nested structure from every "
            "replica, with None where one has nothing to say"
        ) from error


def check_components(structure: Any, num_replicas: int, giver: str) -> None:
    """Refuse distributed values that have not one component for each replica.

    Parameters
    ----------
    structure : nested structure
    num_replicas : int
        Replicas of this process.
    giver : str
        Begins the message: who gave the value.

    Raises
    ------
    ValueError
        If there is one; the message gives both numbers.

    Examples
    --------
    >>> check_components({"x": PerReplica([1, 2])}, 3, "merge_fn gave")
    Traceback (most recent call last):
        ...
    ValueError: merge_fn gave a PerReplica with 2 components for 3 replicas: give it one component for each replica
    """
    if type(structure) in _LEAF_TYPES:
        return
    for leaf in _distributed_in(structure):
        if len(leaf.values) != num_replicas:
            raise ValueError(
                f"{giver} a {type(leaf).__name__} with {len(leaf.values)} components for {num_replicas} replicas: give "
                "it one component for each replica"
            )


def _distributed_in(structure: Any) -> Iterator[DistributedValues[Any]]:
    """The distributed values of a structure, at any depth."""
    for leaf in nest.flatten_containers(structure)[0]:
        if isinstance(leaf, DistributedValues):
            yield leaf
        elif nest.is_composite(leaf) and (parts := _parts(leaf)) is not None:
            yield from (part for part in parts[0] if isinstance(part, DistributedValues))


def select_replica(local_replica_id: int, structure: Any) -> Any:
    """Give the structure that one replica sees.

    Parameters
    ----------
    local_replica_id : int
        Position among the replicas of this process.
    structure : nested structure
        May hold distributed values at any depth.

    Returns
    -------
    nested structure
        New containers; each distributed value replaced by that replica's component, other leaves shared. A composite,
        such as a dataclass, is new if there is a component in it, and shared otherwise.

    Examples
    --------
    >>> select_replica(1, {"x": PerReplica([1, 2]), "y": 5})
    {'x': 2, 'y': 5}
    """
    if type(structure) in _LEAF_TYPES:
        return structure
    leaves, shape = nest.flatten_containers(structure)
    return nest.unflatten(shape, [_component(leaf, local_replica_id) for leaf in leaves])


def _component(leaf: Any, local_replica_id: int) -> Any:
    if type(leaf) in _LEAF_TYPES:
        return leaf
    if isinstance(leaf, DistributedValues):
        return leaf.component(local_replica_id)
    return _component_of_composite(leaf, local_replica_id) if nest.is_composite(leaf) else leaf


def _component_of_composite(composite: Any, local_replica_id: int) -> Any:
    """A new object around what the replica sees; the object itself where that is what it holds."""
    parts = _parts(composite)
    if parts is None:
        return composite
    leaves, shape = parts
    seen = [_component(leaf, local_replica_id) for leaf in leaves]
    # Variables are used as a whole: a model that consists of them stays the object that it is.
    if all(part is leaf for part, leaf in zip(seen, leaves, strict=True)):
        return composite
    return nest.unflatten(shape, seen)


def split_arguments(
    args: Sequence[Any], kwargs: Mapping[str, Any], num_replicas: int
) -> tuple[Rows, Sequence[Mapping[str, Any]]]:
    """Give the arguments that each replica is called with.

    Parameters
    ----------
    args : sequence
    kwargs : mapping of str to object
        Arguments of all replicas; both may hold distributed values at any depth.
    num_replicas : int
        Replicas of this process.

    Returns
    -------
    rows : list of tuple
        Positional arguments of each replica. Containers are new for each, leaves are shared.
    keywords : sequence of mapping
        Keyword arguments of each replica.

    Raises
    ------
    ValueError
        If a distributed value has not one component for each replica.

    Examples
    --------
    >>> split_arguments((PerReplica([1, 2]), [3]), {}, 2)[0]
    [(1, [3]), (2, [3])]
    """
    rows: Rows = [()] * num_replicas
    if args:
        rows = list(zip(*(_column(arg, num_replicas) for arg in args), strict=True))
    if not kwargs:
        return rows, [kwargs] * num_replicas
    keyword_columns = [_column(value, num_replicas) for value in kwargs.values()]
    return rows, [dict(zip(kwargs, row, strict=True)) for row in zip(*keyword_columns, strict=True)]


def _column(value: Any, num_replicas: int) -> Sequence[Any]:
    """One argument as each replica sees it."""
    kind = type(value)
    if kind in _LEAF_TYPES:
        return [value] * num_replicas
    if kind is PerReplica:
        components: tuple[Any, ...] = value.values
        return components if len(components) == num_replicas else _refuse(value, num_replicas)
    leaves, shape = nest.flatten_containers(value)
    columns = [_leaf_column(leaf, num_replicas) for leaf in leaves]
    return [nest.unflatten(shape, [column[i] for column in columns]) for i in range(num_replicas)]


def _leaf_column(leaf: Any, num_replicas: int) -> Sequence[Any]:
    """One leaf of an argument as each replica sees it."""
    if type(leaf) in _LEAF_TYPES:
        return (leaf,) * num_replicas
    if isinstance(leaf, DistributedValues):
        if len(leaf.values) != num_replicas:
            _refuse(leaf, num_replicas)
        return [leaf.component(i) for i in range(num_replicas)]
    if not nest.is_composite(leaf):
        return (leaf,) * num_replicas
    for value in _distributed_in(leaf):
        if len(value.values) != num_replicas:
            _refuse(value, num_replicas)
    return [_component_of_composite(leaf, i) for i in range(num_replicas)]


def _refuse(value: DistributedValues[Any], num_replicas: int) -> Sequence[Any]:
    raise ValueError(
        f"a {type(value).__name__} with {len(value.values)} components cannot be split over {num_replicas} replicas: "
        "it was made by another strategy. Pass the values through the strategy that runs this function"
    )
