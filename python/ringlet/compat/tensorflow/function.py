"""tf.function: ringlet's, whose answers are tensors."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from ringlet import nest
from ringlet.compat.tensorflow.basics import convert_to_tensor
from ringlet.compat.tensorflow.elements import as_tensors
from ringlet.compat.tensorflow.spec import TensorSpec
from ringlet.errors import OutOfRangeError
from ringlet.tf_function import Function
from ringlet.tf_function import function as mark_function
from ringlet.values import DistributedValues

__all__ = ["TensorFunction", "function"]

# What a function's answers are made tensors of.
_VALUES = (bool, int, float, complex, str, bytes, np.ndarray, np.generic)


class TensorFunction(Function[..., Any]):
    """A function whose numbers and arrays are tensors for who calls it. Made by ``tf.function``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the Python function; with arguments as tensors, where `input_signature` was given."""
        if self.input_signature is not None:
            args, kwargs = self._bound(args, kwargs)
        try:
            result = self.python_function(*args, **kwargs)
        except StopIteration as error:  # of next(iterator), which programs catch as TensorFlow's class
            raise OutOfRangeError(
                "End of sequence: the iterator that the function reads has no more elements"
            ) from error
        if isinstance(result, _VALUES):
            return as_tensors(result)
        return nest.map_structure(_answer, result) if nest.is_nested(result) else result

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments as tensors of the specs of the signature, in the order of the function's parameters."""
        specs = list(self.input_signature)
        if len(args) + len(kwargs) > len(specs):
            raise TypeError(
                f"{self!r} takes the {len(specs)} arguments of its input_signature, got {args} and {kwargs}"
            )
        names = list(inspect.signature(self.python_function).parameters)
        spec_of = dict(zip(names, specs, strict=False))
        return (
            tuple(_as_spec(value, spec) for value, spec in zip(args, specs, strict=False)),
            {name: _as_spec(value, spec_of.get(name)) for name, value in kwargs.items()},
        )


def _as_spec(value: Any, spec: Any) -> Any:
    """An argument with tensors where the signature has specs of tensors."""
    if isinstance(spec, dict) and isinstance(value, dict):
        return {name: _as_spec(item, spec.get(name)) for name, item in value.items()}
    if isinstance(spec, (list, tuple)) and isinstance(value, (list, tuple)) and len(spec) == len(value):
        return type(spec)(map(_as_spec, value, spec))
    if not isinstance(spec, TensorSpec) or isinstance(value, DistributedValues):
        return value
    try:
        tensor = convert_to_tensor(value, spec.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"Can not cast {value!r} to {spec}, which the input_signature has: {error}") from error
    if not spec.is_compatible_with(tensor):
        raise TypeError(f"Can not cast {value!r} to {spec}, which the input_signature has")
    return tensor


def _answer(leaf: Any) -> Any:
    return as_tensors(leaf) if isinstance(leaf, _VALUES) else leaf


def function(  # noqa: PLR0917  # TensorFlow's
    func: Any = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Any:
    """Mark a function, as :func:`ringlet.function` does: it runs eagerly. Its numbers and arrays become tensors.

    Parameters
    ----------
    func, autograph, jit_compile, reduce_retracing : optional
        As :func:`ringlet.function` takes them.
    input_signature : sequence of TensorSpec, optional
        What arguments are converted to; a tensor of another dtype or shape is a `TypeError`.
    experimental_implements, experimental_autograph_options, experimental_attributes : optional
    experimental_relax_shapes, experimental_compile, experimental_follow_type_hints : optional
        Accepted; without effect.

    Returns
    -------
    Function
        Or the decorator, where there is no `func`.

    Examples
    --------
    >>> @function
    ... def one():
    ...     return 1.0
    >>> one()
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """
    if func is None:
        return lambda decorated: function(decorated, input_signature)
    return TensorFunction(mark_function(func).python_function, input_signature)
