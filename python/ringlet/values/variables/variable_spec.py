"""What is asked of a new variable, and what is known about one for as long as it lives."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.values.value_conversion import Shape, as_initial_value, fits
from ringlet.values.variables.synchronization import VariableAggregation, VariableSynchronization

__all__ = ["VariableRequest", "VariableSpec"]


@dataclasses.dataclass(frozen=True)
class VariableRequest:
    """The arguments of one call of :class:`ringlet.Variable`, as they were given.

    Attributes
    ----------
    array_type : type
        A subclass of ndarray that reads of the variable are of.

    Examples
    --------
    >>> VariableRequest(1.5, name="v").trainable is None
    True
    """

    initial_value: Any = None
    trainable: bool | None = None
    validate_shape: bool = True
    name: str | None = None
    dtype: Any = None
    constraint: Callable[..., Any] | None = None
    synchronization: Any = VariableSynchronization.AUTO
    aggregation: Any = VariableAggregation.NONE
    shape: Any = None
    array_type: type[NDArray[Any]] = np.ndarray

    @functools.cached_property
    def beginning(self) -> Any:
        """The initial value, or what it gives if it is a callable, which is called once."""
        return self.initial_value() if callable(self.initial_value) else self.initial_value

    def describe(self) -> str:
        """Tell which variable is asked for: its name, and the dtype and the shape of what it begins with if known.

        Examples
        --------
        >>> VariableRequest([1.5, 2.5], name="v").describe(), VariableRequest(lambda: 1.5).describe()
        ("Variable 'v' float64[2]", "Variable 'Variable'")
        """
        text = f"Variable '{self.name or 'Variable'}'"
        if callable(self.initial_value):  # called once for all replicas
            return text
        try:
            array = as_initial_value(self.initial_value, self.dtype, self.name)
        except (TypeError, ValueError):  # refused when the variable is made
            return text
        return f"{text} {array.dtype}{list(array.shape)}"

    def first_value(self) -> NDArray[Any]:
        """Give the array that the variable begins with; calls the initial value if it is a callable.

        Raises
        ------
        ValueError
            If there is none, its shape is not the one that was asked for, or the constraint is no callable.
        TypeError
            If it does not fit the dtype.

        Examples
        --------
        >>> VariableRequest([1, 2], dtype="float32").first_value()
        array([1., 2.], dtype=float32)
        """
        if self.initial_value is None:
            raise ValueError("The `initial_value` of a variable must be specified: an array-like, or a callable")
        if self.constraint is not None and not callable(self.constraint):
            raise ValueError(
                f"Argument `constraint` must be None or a callable. Got a {type(self.constraint)}: "
                f"{self.constraint!r}. Give a function that takes the value and returns the one to hold"
            )
        array = as_initial_value(self.beginning, self.dtype, self.name)
        shape = self.wanted_shape()
        if shape is not None and not fits(array.shape, shape):
            raise ValueError(
                f"The initial value's shape {array.shape} is not compatible with the explicitly supplied `shape` "
                f"argument {shape} of variable: {self.name}. Leave out one of them, or reshape the value"
            )
        return array

    def wanted_shape(self) -> Shape:
        """Give the shape that was asked for, if any; a number stands for that of a vector.

        Raises
        ------
        TypeError
            If it is no shape.

        Examples
        --------
        >>> VariableRequest([1, 2], shape=2).wanted_shape(), VariableRequest([1, 2]).wanted_shape()
        ((2,), None)
        """
        if self.shape is None:
            return None
        sizes = (self.shape,) if isinstance(self.shape, (int, np.integer)) else self.shape
        try:
            return tuple(None if size is None else operator.index(size) for size in sizes)
        except TypeError:
            raise TypeError(
                f"the shape of variable {self.name} is a tuple of sizes, with None for any size, got {self.shape!r}: "
                "write shape=(3, None)"
            ) from None


@dataclasses.dataclass(frozen=True)
class VariableSpec:
    """What never changes about a variable.

    Parameters
    ----------
    name : str
        Ends in ``:0``, as TensorFlow's names do.
    dtype : dtype
    shape : tuple of int or None, or None
        What values must have; None in place of a size, or of the whole, if any will do.
    trainable : bool
    synchronization : VariableSynchronization
    aggregation : VariableAggregation
    constraint : callable or None
    reader : callable or None
        What makes of an array what readers of the variable get; None where they get the array.

    Examples
    --------
    >>> request = VariableRequest(1.5, name="v", synchronization=VariableSynchronization.ON_READ)
    >>> spec = VariableSpec.of(request, request.first_value(), request.synchronization, request.aggregation)
    >>> spec.name, spec.trainable, spec.renamed("v/replica_1").name
    ('v:0', False, 'v/replica_1:0')
    """

    name: str
    dtype: np.dtype[Any]
    shape: Shape
    trainable: bool
    synchronization: VariableSynchronization
    aggregation: VariableAggregation
    constraint: Callable[..., Any] | None
    reader: Callable[[NDArray[Any]], Any] | None = None

    @functools.cached_property
    def is_static(self) -> bool:
        """Whether all values have one shape."""
        return self.shape is not None and None not in self.shape

    @classmethod
    def of(
        cls,
        request: VariableRequest,
        value: NDArray[Any],
        synchronization: VariableSynchronization,
        aggregation: VariableAggregation,
    ) -> VariableSpec:
        """Give the spec of the variable that a request asks for, with what the strategy decided."""
        asked = request.wanted_shape()
        shape: Shape = value.shape if asked is None else asked
        kind = kind_of(request.beginning)
        is_trainable = synchronization is not VariableSynchronization.ON_READ
        return cls(
            f"{_checked_name(request.name)}:0",
            value.dtype,
            shape if request.validate_shape else None,
            is_trainable if request.trainable is None else bool(request.trainable),
            synchronization,
            aggregation,
            request.constraint,
            None if kind is None else kind.reader(request.beginning),
        )

    def renamed(self, name: str) -> VariableSpec:
        """Give the spec of another component."""
        return dataclasses.replace(self, name=f"{name}:0")


def _checked_name(name: Any) -> str:
    if name is None:
        return "Variable"
    if not isinstance(name, str):
        raise ValueError(f"name for name_scope must be a string: the name of a variable is text or None, got {name!r}")
    return name.removesuffix("/")
