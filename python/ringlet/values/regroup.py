"""Conversion of per-replica structures to structures of distributed values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from ringlet import nest
from ringlet.values.per_replica import PerReplica

LEAF_TYPES = nest.PLAIN_TYPES | {np.ndarray, np.float32, np.float64, np.int32, np.int64}
"""Common leaf types, recognized without flattening."""

Wrap = Callable[[Sequence[Any]], Any]

_SAME_ANSWERS = "Return the same nested structure from every replica, with None for missing values"


def regroup(values: Sequence[Any], wrap: Wrap = PerReplica, *, always_wrap: bool = False) -> Any:
    """Combine one nested structure per replica into one structure of distributed values.

    A leaf or composite that is the same object on all replicas is kept unless `always_wrap`. Other composites, such as
    dataclasses, are combined field by field, unless they contain themselves. Components of a distributed variable are
    replaced by that variable.
    """
    first = values[0]
    if type(first) in LEAF_TYPES:
        return _regroup_leaf(values, wrap, always_wrap)
    kind = type(first)
    # Fast path: dictionaries, lists and tuples of common leaves.
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
    leaves: list[Any], shape: nest.PyTreeSpec, values: Sequence[Any], wrap: Wrap, always_wrap: bool
) -> Any:
    columns = _columns(leaves, shape, values, "the replicas returned different structures", _SAME_ANSWERS)
    grouped = _grouped(leaves, [column[-1] for column in columns], columns, wrap, always_wrap)
    return nest.unflatten(shape, grouped)


def _rows(keys: list[Any], values: Sequence[Any]) -> list[list[Any]] | None:
    """Return the values of dictionaries in the order of `keys`; None if the keys or types differ."""
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
    """Combine each column, the values of one leaf on all replicas, as :func:`regroup` does.

    `firsts` and `lasts` are the first and last entries of the columns.
    """
    # Fast path for many distinct arrays.
    if LEAF_TYPES.issuperset(map(type, firsts)) and not any(map(operator.is_, firsts, lasts)):
        return [wrap(column) for column in columns]
    return [
        wrap(column)
        if column[0] is not column[-1] and type(column[0]) in LEAF_TYPES
        else _regroup_leaf(column, wrap, always_wrap)
        for column in columns
    ]


def as_variables(answer: Any) -> Any:
    """Replace components of distributed variables by the variables: :func:`regroup` for a single replica."""
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
    # Looked up on the class, because instances may have attributes of any name.
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
    """Return the distributed variable that all arguments are, or are components of; None if there is none."""
    first = components[0]
    if getattr(first, "is_distributed_variable", False) and all(component is first for component in components):
        return first
    references = [getattr(component, "_container", None) for component in components]
    variables = [None if reference is None else reference() for reference in references]
    return variables[0] if all(variable is variables[0] for variable in variables) else None


def parts_of(composite: Any) -> tuple[list[Any], nest.PyTreeSpec] | None:
    """Return the leaves and the spec of a composite; None if it contains itself."""
    try:
        return nest.flatten(composite)
    except RecursionError:
        return None


def _shape_of(value: Any) -> nest.PyTreeSpec:
    return (parts_of(value) or nest.flatten_containers(value))[1]


def leaf_columns(
    components: Sequence[Any], call: str, whose: str = "replica"
) -> tuple[list[tuple[Any, ...]], nest.PyTreeSpec]:
    """Flatten nested structures of the same form; return the leaves, grouped by position, and the common structure.

    If the structures differ, raise a ValueError that shows two of them; `call` names the operation, and `whose` the
    owners of the values, such as "replica".
    """
    leaves, shape = nest.flatten(components[0])
    text = f"{call} got different structures"
    remedy = f"Use the same nested structure on every {whose}"
    return _columns(leaves, shape, components, text, remedy, whose=whose), shape


def _columns(
    leaves: list[Any], shape: nest.PyTreeSpec, values: Sequence[Any], text: str, remedy: str, *, whose: str = "replica"
) -> list[tuple[Any, ...]]:
    columns = [leaves]
    for number, value in enumerate(values[1:], 1):
        try:
            columns.append(nest.same_structure_leaves(shape, value))
        except ValueError as error:
            raise ValueError(
                f"{text}: {whose} 0 has {nest.describe(shape)}, {whose} {number} has "
                f"{nest.describe(_shape_of(value))}, where * stands for a value. {remedy}"
            ) from error
    return list(zip(*columns, strict=True))
