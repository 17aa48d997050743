"""Arguments of a new variable, and immutable properties of a variable."""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.values.value_conversion import Shape, as_initial_value, fits
from ringlet.values.variables.synchronization import VariableAggregation, VariableSynchronization

_NUMBERS = re.compile(r"_\d+(?=/|$)")


@dataclasses.dataclass(frozen=True, eq=False)
class VariableRequest:
    """The arguments of a call to :class:`ringlet.Variable`; `array_type` is the type of arrays that reads return."""

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
        """The initial value; a callable is called once."""
        return self.initial_value() if callable(self.initial_value) else self.initial_value

    def describe(self) -> str:
        """Describe the request by name, dtype and shape, for comparison between replicas.

        The suffix of unique names, as in ``v_1``, is left out: replicas may number the same variable differently.
        """
        text = f"Variable '{_NUMBERS.sub('', str(self.name or 'Variable'))}'"
        if callable(self.initial_value):  # called later, once for all replicas
            return text
        try:
            array = as_initial_value(self.initial_value, self.dtype, self.name)
        except (TypeError, ValueError):  # creating the variable raises the error
            return text
        return f"{text} {array.dtype}{list(array.shape)}"

    def first_value(self) -> NDArray[Any]:
        """Return the initial value as an array, validated against `shape`."""
        if self.initial_value is None:
            raise ValueError("The `initial_value` of a variable must be specified: an array-like, or a callable")
        if self.constraint is not None and not callable(self.constraint):
            raise ValueError(
                f"Argument `constraint` must be None or a callable. Got a {type(self.constraint)}: "
                f"{self.constraint!r}. Pass a function from the updated value to the value to store"
            )
        array = as_initial_value(self.beginning, self.dtype, self.name)
        shape = self.wanted_shape()
        if shape is not None and not fits(array.shape, shape):
            raise ValueError(
                f"The initial value's shape {array.shape} is not compatible with the explicitly supplied `shape` "
                f"argument {shape} of variable: {self.name}. Omit `shape`, or reshape the value"
            )
        return array

    def wanted_shape(self) -> Shape:
        """Return the requested shape, or None; a number means a 1-d shape."""
        if self.shape is None:
            return None
        sizes = (self.shape,) if isinstance(self.shape, (int, np.integer)) else self.shape
        try:
            return tuple(None if size is None else operator.index(size) for size in sizes)
        except TypeError:
            raise TypeError(
                f"shape of variable {self.name} is {self.shape!r}: expected a tuple of sizes, with None for any size, "
                "such as shape=(3, None)"
            ) from None


@dataclasses.dataclass(frozen=True, eq=False)
class VariableSpec:
    """The immutable properties of a variable.

    A shape of None, or a size of None in it, is unknown. `reader`, if given, converts an array to the type that reads
    return.
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
        """Whether the shape is fixed."""
        return self.shape is not None and None not in self.shape

    @classmethod
    def of(
        cls,
        request: VariableRequest,
        value: NDArray[Any],
        synchronization: VariableSynchronization,
        aggregation: VariableAggregation,
    ) -> VariableSpec:
        """Return the spec of a request, with the modes chosen by the strategy."""
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
        """Return a copy with a different name."""
        return dataclasses.replace(self, name=f"{name}:0")


class SpecProperties:
    """Mixin of variables: properties that return the fields of `_spec`."""

    _spec: VariableSpec

    @property
    def name(self) -> str:
        """The name, which ends in ``:0`` as in TensorFlow, except for a ShardedVariable."""
        return self._spec.name

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the value."""
        return self._spec.dtype

    @property
    def trainable(self) -> bool:
        """Whether optimizers should update the variable."""
        return self._spec.trainable

    @property
    def aggregation(self) -> VariableAggregation:
        """How the values that replicas write are aggregated."""
        return self._spec.aggregation


def _checked_name(name: Any) -> str:
    if name is None:
        return "Variable"
    if not isinstance(name, str):
        raise ValueError(f"name for name_scope must be a string, got {name!r}: pass a string or None as name")
    return name.removesuffix("/")
