"""Selection of one replica's components from structures of distributed values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from ringlet import nest
from ringlet.values.distributed_values import DistributedValues
from ringlet.values.per_replica import PerReplica
from ringlet.values.regroup import LEAF_TYPES, parts_of

Rows = list[tuple[Any, ...]]

_DISTRIBUTED = frozenset({PerReplica})


def check_components(structure: Any, num_replicas: int, subject: str) -> None:
    """Raise ValueError if a distributed value does not have one component for each replica of this process.

    `subject` begins the message, as in "update was given".
    """
    if type(structure) in LEAF_TYPES:
        return
    if type(structure) is PerReplica and len(structure._values) == num_replicas:
        return
    for leaf in _distributed_in(structure):
        if len(leaf.values) != num_replicas:
            raise ValueError(
                f"{subject} a {type(leaf).__name__} with {len(leaf.values)} components for {num_replicas} replicas: "
                "pass one component for each replica"
            )


def _distributed_in(structure: Any) -> Iterator[DistributedValues[Any]]:
    for leaf in nest.flatten_containers(structure)[0]:
        if isinstance(leaf, DistributedValues):
            yield leaf
        elif nest.is_composite(leaf) and (parts := parts_of(leaf)) is not None:
            yield from (part for part in parts[0] if isinstance(part, DistributedValues))


def select_replica(local_replica_id: int, structure: Any) -> Any:
    """Return a structure with distributed values, except variables, replaced by one replica's components.

    Containers are new, leaves are shared. A composite, such as a dataclass, is copied only if a part of it is replaced.
    """
    if type(structure) in LEAF_TYPES or type(structure) is PerReplica:
        return _component(structure, local_replica_id)
    leaves, shape = nest.flatten_containers(structure)
    return nest.unflatten(shape, [_component(leaf, local_replica_id) for leaf in leaves])


def _component(leaf: Any, local_replica_id: int) -> Any:
    if type(leaf) in LEAF_TYPES:
        return leaf
    if isinstance(leaf, DistributedValues):
        return leaf.component(local_replica_id)
    return _component_of_composite(leaf, local_replica_id) if nest.is_composite(leaf) else leaf


def _component_of_composite(composite: Any, local_replica_id: int) -> Any:
    """Return a copy with the replica's components; the object itself if nothing changes."""
    parts = parts_of(composite)
    if parts is None:
        return composite
    leaves, shape = parts
    seen = [_component(leaf, local_replica_id) for leaf in leaves]
    # Variables are passed as a whole, so a model that contains only variables is not copied.
    if all(part is leaf for part, leaf in zip(seen, leaves, strict=True)):
        return composite
    return nest.unflatten(shape, seen)


def split_arguments(
    args: Sequence[Any], kwargs: Mapping[str, Any], num_replicas: int
) -> tuple[Rows, Sequence[Mapping[str, Any]]]:
    """Return the positional and the keyword arguments of each replica; containers are new, leaves are shared."""
    rows: Rows = [()] * num_replicas
    if args:
        rows = list(zip(*(_column(arg, num_replicas) for arg in args), strict=True))
    if not kwargs:
        return rows, [kwargs] * num_replicas
    keyword_columns = [_column(value, num_replicas) for value in kwargs.values()]
    return rows, [dict(zip(kwargs, row, strict=True)) for row in zip(*keyword_columns, strict=True)]


def _column(value: Any, num_replicas: int) -> Sequence[Any]:
    """Return each replica's value of one argument."""
    kind = type(value)
    if kind in LEAF_TYPES:
        return [value] * num_replicas
    if kind is PerReplica:
        return _components(value, num_replicas)
    if kind is dict or kind is list or kind is tuple:
        leaves = value.values() if kind is dict else value
        # Fast path for flat containers.
        if LEAF_TYPES.issuperset(map(type, leaves)):
            return [kind(value) for _ in range(num_replicas)]
        if _DISTRIBUTED.issuperset(map(type, leaves)):
            rows = zip(*[_components(leaf, num_replicas) for leaf in leaves], strict=True)
            return [dict(zip(value, row, strict=True)) if kind is dict else kind(row) for row in rows]
    return _flattened_column(value, num_replicas)


def _flattened_column(value: Any, num_replicas: int) -> list[Any]:
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
    """Return each replica's value of one leaf of an argument."""
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
        "another strategy created this value. Create the value with the strategy that runs this function"
    )
