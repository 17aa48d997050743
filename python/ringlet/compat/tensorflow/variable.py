"""``tf.Variable``: ringlet's Variable with TensorFlow's dtypes and with tensors as values."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from ringlet.compat.tensorflow.conversion import as_array
from ringlet.compat.tensorflow.dtypes import as_dtype
from ringlet.compat.tensorflow.tensor import Tensor, check_dtype
from ringlet.compat.tensorflow.variable_creators import create_through_scopes
from ringlet.sharding import ShardedArray
from ringlet.values import Variable as RingletVariable
from ringlet.values.variables.synchronization import VariableAggregation, VariableSynchronization
from ringlet.values.variables.variable import VariableType, create_variable
from ringlet.values.variables.variable_spec import VariableRequest


class _CompatVariableType(VariableType):
    """Metaclass of ``tf.Variable``: every variable is an instance of ``tf.Variable``."""

    def __call__(  # type: ignore[override]  # noqa: PLR0917  # TensorFlow's
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Callable[..., Any] | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation | None = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
    ) -> Any:
        if variable_def is not None:
            raise NotImplementedError(
                "variable_def is not supported, because functions run eagerly, without graphs. Pass initial_value "
                "instead."
            )
        arguments = {
            "initial_value": initial_value,
            "trainable": trainable,
            "validate_shape": validate_shape,
            "caching_device": caching_device,
            "name": name,
            "variable_def": variable_def,
            "dtype": dtype,
            "import_scope": import_scope,
            "constraint": constraint,
            "synchronization": synchronization,
            "aggregation": aggregation,
            "shape": shape,
            "experimental_enable_variable_lifting": None,
        }
        return create_through_scopes(
            lambda **given: create_variable(_request(**given)), lambda **given: _request(**given).describe(), arguments
        )

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, RingletVariable)

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, RingletVariable)


class Variable(RingletVariable, metaclass=_CompatVariableType):
    """A mutable value (``tf.Variable``): a :class:`ringlet.Variable` whose values are tensors.

    Parameters
    ----------
    initial_value : array-like or callable
        3.0 creates a variable of float32; 1 creates a variable of int32.
    trainable, validate_shape, name, dtype, constraint, synchronization, aggregation, shape
        As for :class:`ringlet.Variable`, in TensorFlow's order.
    caching_device, import_scope, experimental_enable_variable_lifting : optional, unused
    variable_def : None

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> v = tf.Variable(3.0)
    >>> v.assign_add(1.0)
    <ringlet.Variable 'Variable:0' shape=() dtype=float32, numpy=4.0>
    >>> v * 2
    <tf.Tensor: shape=(), dtype=float32, numpy=8.0>
    """


def _request(initial_value: Any = None, dtype: Any = None, **given: Any) -> VariableRequest:
    asked = {field.name: given[field.name] for field in dataclasses.fields(VariableRequest) if field.name in given}
    wanted = None if dtype is None else as_dtype(dtype)
    return VariableRequest(_first_value(initial_value, dtype), dtype=wanted, array_type=Tensor, **asked)


def _first_value(value: Any, dtype: Any) -> Any:
    if value is None:
        return None
    if not callable(value):
        return _as_value(value, dtype)

    @functools.wraps(value, updated=())  # the signature determines whether the function creates shards itself
    def first_value(**part: Any) -> Any:
        return _as_value(value(**part), dtype)

    return first_value


def _as_value(value: Any, dtype: Any) -> Any:
    check_dtype(value, dtype)
    return value if isinstance(value, ShardedArray) else as_array(value, dtype)
