"""Between nested structures of distributed values and the structures that single replicas see."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from ringlet import nest
from ringlet.values.per_replica import PerReplica

__all__ = ["LEAF_TYPES", "as_variables", "leaf_columns", "parts_of", "regroup"]

LEAF_TYPES = nest.PLAIN_TYPES | {np.ndarray, np.float32, np.float64, np.int32, np.int64}
"""Types of leaves that need no walk to be known as such."""

Wrap = Callable[[Sequence[Any]], Any]

_SAME_ANSWERS = "Return the same nested structure from every replica, with None where one has nothing to say"


def regroup(values: Sequence[Any], wrap: Wrap = PerReplica, *, always_wrap: bool = False) -> Any:
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
    if type(first) in LEAF_TYPES:
        return _regroup_leaf(values, wrap, always_wrap)
    kind = type(first)
    # What programs give most needs no walk: dictionaries, lists and tuples of leaves.
    if kind is dict:
        if LEAF_TYPES.issuperset(map(type, first.values())) and (rows := _rows(list(first), values)):
            grouped = _grouped(rows[0], rows[-1], zip(*rows, strict=True), wrap, always_wrap)
            return dict(zip(first, grouped, strict=True))
    elif (kind is list or kind is tuple) and LEAF_TYPES.issuperset(map(type, first)) and _are_alike(first, values):
        return kind(_grouped(first, values[-1], zip(*values, strict=True), wrap, always_wrap))
    leaves, shape = nest.flatten_containers(first)
    if len(leaves) == 1 and leaves[0] is first:
        return _regroup_leaf(values, wrap, always_wrap)
    return _regroup_columns(leaves, shape, values, wrap, always_wrap)


def _regroup_columns(
    leaves: list[Any],
    shape: nest.PyTreeSpec,
    values: Sequence[Any],
    wrap: Wrap,
    always_wrap: bool,
) -> Any:
    columns = _columns(leaves, shape, values, "the replicas gave different structures", _SAME_ANSWERS)
    grouped = _grouped(leaves, [column[-1] for column in columns], columns, wrap, always_wrap)
    return nest.unflatten(shape, grouped)


def _rows(keys: list[Any], values: Sequence[Any]) -> list[list[Any]] | None:
    """The values of dictionaries in the order of the keys; None if one is no dictionary, or has others."""
    rows = []
    for value in values:
        if type(value) is not dict:
            return None
        if list(value) == keys:
            rows.append(list(value.values()))
        elif value.keys() == set(keys):
            rows.append([value[key] for key in keys])
        else:
            return None
    return rows


def _are_alike(first: Sequence[Any], values: Sequence[Any]) -> bool:
    return all(type(value) is type(first) and len(value) == len(first) for value in values)


def _grouped(
    firsts: Collection[Any], lasts: Iterable[Any], columns: Iterable[tuple[Any, ...]], wrap: Wrap, always_wrap: bool
) -> list[Any]:
    """Make distributed values of columns, whose first and last entries are given besides."""
    # Arrays that differ need none of what others do; there may be many.
    if LEAF_TYPES.issuperset(map(type, firsts)) and not any(map(operator.is_, firsts, lasts)):
        return [wrap(column) for column in columns]
    return [
        wrap(column)
        if column[0] is not column[-1] and type(column[0]) in LEAF_TYPES
        else _regroup_leaf(column, wrap, always_wrap)
        for column in columns
    ]


def as_variables(answer: Any) -> Any:
    """Put distributed variables in the places of their components, as :func:`regroup` does for several replicas.

    Parameters
    ----------
    answer : nested structure
        What the only replica gave.

    Returns
    -------
    nested structure
        `answer` itself if there is no component in it.

    Examples
    --------
    >>> answer = ["anything", 5]
    >>> as_variables(answer) is answer
    True
    """
    if type(answer) in LEAF_TYPES:
        return answer
    return regroup([answer]) if any(map(_is_component, nest.flatten_containers(answer)[0])) else answer


def _is_component(leaf: Any) -> bool:
    if type(leaf) in LEAF_TYPES or not hasattr(type(leaf), "distribute_strategy"):
        return False
    return getattr(leaf, "_container", None) is not None


def _regroup_leaf(values: Sequence[Any], wrap: Wrap, always_wrap: bool) -> Any:
    first = values[0]
    is_plain = type(first) in LEAF_TYPES
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
    if not is_plain and nest.is_composite(first) and (parts := parts_of(first)) is not None:
        return _regroup_columns(*parts, values, wrap, always_wrap)
    return wrap(tuple(values))


def _variable_of(components: Sequence[Any]) -> Any:
    """The distributed variable that all of these are, or are components of; None for anything else."""
    first = components[0]
    if getattr(first, "is_distributed_variable", False) and all(component is first for component in components):
        return first
    references = [getattr(component, "_container", None) for component in components]
    variables = [None if reference is None else reference() for reference in references]
    return variables[0] if all(variable is variables[0] for variable in variables) else None


def parts_of(composite: Any) -> tuple[list[Any], nest.PyTreeSpec] | None:
    """What a composite consists of; None if it contains itself, such as a node of a graph that knows its neighbours."""
    try:
        return nest.flatten(composite)
    except RecursionError:
        return None


def _shape_of(value: Any) -> nest.PyTreeSpec:
    return (parts_of(value) or nest.flatten_containers(value))[1]


def leaf_columns(components: Sequence[Any], call: str) -> tuple[list[tuple[Any, ...]], nest.PyTreeSpec]:
    """Take nested structures of one shape apart, leaf by leaf.

    Parameters
    ----------
    components : sequence
        One structure for each replica.
    call : str
        Begins the message: what was to be done with them.

    Returns
    -------
    columns : list of tuple
        The leaves of all replicas for each place of the structure.
    shape : PyTreeSpec

    Raises
    ------
    ValueError
        If another replica's structure differs; shows both.

    Examples
    --------
    >>> leaf_columns([{"a": 1}, {"b": 1}], "reduce")
    Traceback (most recent call last):
        ...
    ValueError: reduce of components that are different structures: replica 0 {'a': *}, replica 1 {'b': *}, ...
    """
    leaves, shape = nest.flatten(components[0])
    text = f"{call} of components that are different structures"
    return _columns(leaves, shape, components, text, "Give the same nested structure on every replica"), shape


def _columns(
    leaves: list[Any], shape: nest.PyTreeSpec, values: Sequence[Any], text: str, remedy: str
) -> list[tuple[Any, ...]]:
    columns = [leaves]
    for replica, value in enumerate(values[1:], 1):
        try:
            columns.append(nest.same_structure_leaves(shape, value))
        except ValueError as error:
            raise ValueError(
                f"{text}: replica 0 {nest.describe(shape)}, replica {replica} {nest.describe(_shape_of(value))}, with "
                f"* for each value. {remedy}"
            ) from error
    return list(zip(*columns, strict=True))
