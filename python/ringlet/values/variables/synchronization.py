"""Synchronization and aggregation modes of variables."""

from __future__ import annotations

import enum
from typing import Any


class VariableSynchronization(enum.Enum):
    """When the components of a variable are synchronized (``tf.VariableSynchronization``).

    Examples
    --------
    >>> import ringlet
    >>> ringlet.VariableSynchronization.ON_READ
    <VariableSynchronization.ON_READ: 3>
    """

    AUTO = 0
    """Chosen by the strategy: ON_WRITE for variables with several components."""
    NONE = 1
    """Never; only for variables with one component."""
    ON_WRITE = 2
    """Every write goes to all components."""
    ON_READ = 3
    """Replicas write to their own component; a read outside replica context aggregates them."""


class VariableAggregation(enum.Enum):
    """How the values that replicas write to a variable are aggregated (``tf.VariableAggregation``).

    Examples
    --------
    >>> import ringlet
    >>> ringlet.VariableAggregation.MEAN
    <VariableAggregation.MEAN: 2>
    """

    NONE = 0
    """No aggregation: every replica writes its own component."""
    SUM = 1
    """The sum over the replicas."""
    MEAN = 2
    """The mean over the replicas; only for floating-point variables."""
    ONLY_FIRST_REPLICA = 3
    """The value of the first replica; others are ignored."""


def check_synchronization(value: Any, name: str | None) -> VariableSynchronization:
    """Return the synchronization; raise ValueError unless it is a member of the enumeration."""
    if isinstance(value, VariableSynchronization):
        return value
    raise _invalid("synchronization", value, name, VariableSynchronization)


def check_aggregation(value: Any, name: str | None) -> VariableAggregation:
    """Return the aggregation, NONE for None; raise ValueError for other values."""
    if isinstance(value, VariableAggregation):
        return value
    if value is None:
        return VariableAggregation.NONE
    raise _invalid("aggregation", value, name, VariableAggregation)


def _invalid(what: str, value: Any, name: str | None, kind: type[enum.Enum]) -> ValueError:
    members = ", ".join(member.name for member in kind)
    return ValueError(
        f"Invalid variable {what} mode: {value} for variable: {name}. Its type is {type(value).__name__}: pass a "
        f"member of ringlet.{kind.__name__} ({members})"
    )
