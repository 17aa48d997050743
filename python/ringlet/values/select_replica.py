"""What single replicas see of structures of distributed values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from ringlet import nest
from ringlet.values.distributed_values import DistributedValues
from ringlet.values.per_replica import PerReplica
from ringlet.values.regroup import LEAF_TYPES, parts_of

__all__ = ["check_components", "select_replica", "split_arguments"]

Rows = list[tuple[Any, ...]]

_DISTRIBUTED = frozenset({PerReplica})


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
    if type(structure) in LEAF_TYPES:
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
        elif nest.is_composite(leaf) and (parts := parts_of(leaf)) is not None:
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
    if type(structure) in LEAF_TYPES:
        return structure
    leaves, shape = nest.flatten_containers(structure)
    return nest.unflatten(shape, [_component(leaf, local_replica_id) for leaf in leaves])


def _component(leaf: Any, local_replica_id: int) -> Any:
    if type(leaf) in LEAF_TYPES:
        return leaf
    if isinstance(leaf, DistributedValues):
        return leaf.component(local_replica_id)
    return _component_of_composite(leaf, local_replica_id) if nest.is_composite(leaf) else leaf


def _component_of_composite(composite: Any, local_replica_id: int) -> Any:
    """A new object around what the replica sees; the object itself where that is what it holds."""
    parts = parts_of(composite)
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
    if kind in LEAF_TYPES:
        return [value] * num_replicas
    if kind is PerReplica:
        return _components(value, num_replicas)
    if kind is dict or kind is list or kind is tuple:
        leaves = value.values() if kind is dict else value
        # What programs give most is looked at without a walk.
        if LEAF_TYPES.issuperset(map(type, leaves)):
            return [kind(value) for _ in range(num_replicas)]
        if _DISTRIBUTED.issuperset(map(type, leaves)):
            rows = zip(*[_components(leaf, num_replicas) for leaf in leaves], strict=True)
            return [dict(zip(value, row, strict=True)) if kind is dict else kind(row) for row in rows]
    return _walked_column(value, num_replicas)


def _walked_column(value: Any, num_replicas: int) -> list[Any]:
    leaves, shape = nest.flatten_containers(value)
    if LEAF_TYPES.issuperset(map(type, leaves)):
        return [nest.unflatten(shape, leaves) for _ in range(num_replicas)]
    columns = [_leaf_column(leaf, num_replicas) for leaf in leaves]
    return [nest.unflatten(shape, row) for row in zip(*columns, strict=True)]


def _components(value: PerReplica[Any], num_replicas: int) -> tuple[Any, ...]:
    components = value._values
    if len(components) != num_replicas:
        _refuse(value, num_replicas)
    return components


def _leaf_column(leaf: Any, num_replicas: int) -> Sequence[Any]:
    """One leaf of an argument as each replica sees it."""
    kind = type(leaf)
    if kind in LEAF_TYPES:
        return (leaf,) * num_replicas
    if kind is PerReplica:
        return _components(leaf, num_replicas)
    if isinstance(leaf, DistributedValues):
        # A single replica may use any variable as a whole.
        if len(leaf.values) != num_replicas and not (num_replicas == 1 and leaf.component(0) is leaf):
            _refuse(leaf, num_replicas)
        return [leaf.component(i) for i in range(num_replicas)]
    if not nest.is_composite(leaf):
        return (leaf,) * num_replicas
    for value in _distributed_in(leaf):
        if len(value.values) != num_replicas:
            _refuse(value, num_replicas)
    return [_component_of_composite(leaf, i) for i in range(num_replicas)]


def _refuse(value: DistributedValues[Any], num_replicas: int) -> NoReturn:
    raise ValueError(
        f"a {type(value).__name__} with {len(value.values)} components cannot be split over {num_replicas} replicas: "
        "it was made by another strategy. Pass the values through the strategy that runs this function"
    )
