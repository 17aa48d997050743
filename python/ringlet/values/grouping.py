"""Between nested structures of distributed values and the structures that single replicas see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
        One structure for each replica, all of the same shape.
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
    leaves, shape = nest.flatten(first)
    if len(leaves) == 1 and leaves[0] is first:
        return _regroup_leaf(values, wrap, always_wrap)
    columns = [leaves, *(_leaves_like(shape, value, i) for i, value in enumerate(values[1:], 1))]
    return nest.unflatten(shape, [_regroup_leaf(column, wrap, always_wrap) for column in zip(*columns, strict=True)])


def _regroup_leaf(values: Sequence[Any], wrap: Callable[[Sequence[Any]], Any], always_wrap: bool) -> Any:
    first = values[0]
    if not always_wrap:
        for value in values:
            if value is not first:
                break
        else:
            return first
    return wrap(values)


def _leaves_like(shape: nest.PyTreeSpec, value: Any, replica: int) -> list[Any]:
    try:
        return nest.same_structure_leaves(shape, value)
    except ValueError as error:
        raise ValueError(
            f"the replicas gave different structures: replica 0 {shape}, replica {replica} {nest.flatten(value)[1]}. "
            "Return the same nested structure from every replica, with None where one has nothing to say"
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
    for leaf in nest.flatten(structure)[0]:
        if isinstance(leaf, DistributedValues) and len(leaf.values) != num_replicas:
            raise ValueError(
                f"{giver} a {type(leaf).__name__} with {len(leaf.values)} components for {num_replicas} replicas: give "
                "it one component for each replica"
            )


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
        New containers; each distributed value replaced by that replica's component, other leaves shared.

    Examples
    --------
    >>> select_replica(1, {"x": PerReplica([1, 2]), "y": 5})
    {'x': 2, 'y': 5}
    """
    if type(structure) in _LEAF_TYPES:
        return structure
    leaves, shape = nest.flatten(structure)
    return nest.unflatten(shape, [_component(leaf, local_replica_id) for leaf in leaves])


def _component(leaf: Any, local_replica_id: int) -> Any:
    return leaf.component(local_replica_id) if isinstance(leaf, DistributedValues) else leaf


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
    leaves, shape = nest.flatten(value)
    for leaf in leaves:
        if isinstance(leaf, DistributedValues) and len(leaf.values) != num_replicas:
            _refuse(leaf, num_replicas)
    return [nest.unflatten(shape, [_component(leaf, i) for leaf in leaves]) for i in range(num_replicas)]


def _refuse(value: DistributedValues[Any], num_replicas: int) -> Sequence[Any]:
    raise ValueError(
        f"a {type(value).__name__} with {len(value.values)} components cannot be split over {num_replicas} replicas: "
        "it was made by another strategy. Pass the values through the strategy that runs this function"
    )
