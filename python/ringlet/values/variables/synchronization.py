"""When the components of a variable are brought together, and how."""

from __future__ import annotations

import enum
from typing import Any

__all__ = ["VariableAggregation", "VariableSynchronization", "check_aggregation", "check_synchronization"]


class VariableSynchronization(enum.Enum):
    """When the components of a variable are brought together (``tf.VariableSynchronization``).

    Examples
    --------
    >>> import ringlet
    >>> ringlet.VariableSynchronization.ON_READ
    <VariableSynchronization.ON_READ: 3>
    """

    AUTO = 0
    """The strategy decides: ON_WRITE wherever there are several components."""
    NONE = 1
    """Never; only for variables with one component."""
    ON_WRITE = 2
    """Every write goes to all components."""
    ON_READ = 3
    """Replicas write to their own component; a read outside of replicas combines them."""


class VariableAggregation(enum.Enum):
    """How what replicas write to a variable becomes one value (``tf.VariableAggregation``).

    Examples
    --------
    >>> import ringlet
    >>> ringlet.VariableAggregation.MEAN
    <VariableAggregation.MEAN: 2>
    """

    NONE = 0
    """Not at all: every replica writes its own component."""
    SUM = 1
    """The sum over the replicas."""
    MEAN = 2
    """The mean over the replicas; only for floating-point variables."""
    ONLY_FIRST_REPLICA = 3
    """What the first replica gives; the others' values are not used."""


def check_synchronization(value: Any, name: str | None) -> VariableSynchronization:
    """Read the synchronization of a variable.

    Parameters
    ----------
    value : VariableSynchronization
    name : str or None
        Of the variable.

    Returns
    -------
    VariableSynchronization

    Raises
    ------
    ValueError
        If it is anything else.

    Examples
    --------
    >>> check_synchronization("ON_READ", "v")
    Traceback (most recent call last):
        ...
    ValueError: Invalid variable synchronization mode: ON_READ for variable: v. ...
    """
    if isinstance(value, VariableSynchronization):
        return value
    raise _invalid("synchronization", value, name, VariableSynchronization)


def check_aggregation(value: Any, name: str | None) -> VariableAggregation:
    """Read the aggregation of a variable.

    Parameters
    ----------
    value : VariableAggregation or None
        None means NONE.
    name : str or None
        Of the variable.

    Returns
    -------
    VariableAggregation

    Raises
    ------
    ValueError
        If it is anything else.

    Examples
    --------
    >>> check_aggregation(None, "v")
    <VariableAggregation.NONE: 0>
    """
    if isinstance(value, VariableAggregation):
        return value
    if value is None:
        return VariableAggregation.NONE
    raise _invalid("aggregation", value, name, VariableAggregation)


def _invalid(what: str, value: Any, name: str | None, kind: type[enum.Enum]) -> ValueError:
    members = ", ".join(member.name for member in kind)
    return ValueError(
        f"Invalid variable {what} mode: {value} for variable: {name}. It is a {type(value).__name__}: give a member of "
        f"ringlet.{kind.__name__} ({members})"
    )
