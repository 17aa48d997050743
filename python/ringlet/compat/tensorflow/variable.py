"""tf.Variable: ringlet's, with TensorFlow's dtypes, whose values are tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ringlet.compat.tensorflow.conversion import as_array
from ringlet.compat.tensorflow.dtypes import as_dtype
from ringlet.compat.tensorflow.tensor import Tensor, check_dtype
from ringlet.sharding import ShardedArray
from ringlet.values import Variable as RingletVariable
from ringlet.values.variables.synchronization import VariableAggregation, VariableSynchronization
from ringlet.values.variables.variable import VariableType, create_variable
from ringlet.values.variables.variable_spec import VariableRequest

__all__ = ["Variable"]


class _CompatVariableType(VariableType):
    """The type of ``tf.Variable``: every variable is an instance of it, whoever made it."""

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
        """Make a variable."""
        if variable_def is not None:
            raise NotImplementedError("variable_def is for graphs, which there are none of: give initial_value")
        return create_variable(
            VariableRequest(
                _first_value(initial_value, dtype),
                trainable,
                validate_shape,
                name,
                None if dtype is None else as_dtype(dtype),
                constraint,
                synchronization,
                aggregation,
                shape,
                array_type=Tensor,
            )
        )

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, RingletVariable)

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, RingletVariable)


class Variable(RingletVariable, metaclass=_CompatVariableType):
    """A value that programs change (``tf.Variable``): :class:`ringlet.Variable` whose values are tensors.

    Parameters
    ----------
    initial_value : array-like or callable
        3.0 makes a variable of float32, 1 one of int32.
    trainable, validate_shape, name, dtype, constraint, synchronization, aggregation, shape
        As :class:`ringlet.Variable` takes them, in the places where TensorFlow has them.
    caching_device, import_scope, experimental_enable_variable_lifting : optional
        Accepted; without effect.
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


def _first_value(value: Any, dtype: Any) -> Any:
    if value is None:
        return None
    if not callable(value):
        return _as_value(value, dtype)

    @functools.wraps(value, updated=())  # what it takes says whether it makes shards by itself
    def first_value(**part: Any) -> Any:
        return _as_value(value(**part), dtype)

    return first_value


def _as_value(value: Any, dtype: Any) -> Any:
    check_dtype(value, dtype)
    return value if isinstance(value, ShardedArray) else as_array(value, dtype)
