"""``tf.function``: ringlet's function with tensors as results."""

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
from ringlet.values import DistributedValues, Mirrored, PerReplica, Variable

# Types of results that are converted to tensors.
_VALUES = (bool, int, float, complex, str, bytes, np.ndarray, np.generic)


class TensorFunction(Function[..., Any]):
    """A function that returns numbers and arrays as tensors; created by ``tf.function``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the Python function, with arguments as tensors if `input_signature` is given."""
        if self.input_signature is not None:
            args, kwargs = self._bound(args, kwargs)
        try:
            result = self.python_function(*args, **kwargs)
        except StopIteration as error:  # raised by next(iterator); TensorFlow programs catch OutOfRangeError
            raise OutOfRangeError(
                "End of sequence: the iterator that the function reads has no more elements"
            ) from error
        return _answer(result)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Convert positional and keyword arguments to tensors that match the specs in `input_signature`."""
        specs = list(self.input_signature)
        if len(args) + len(kwargs) > len(specs):
            raise TypeError(
                f"{self!r} takes {len(specs)} arguments, as in its input_signature, got {args} and {kwargs}"
            )
        names = list(inspect.signature(self.python_function).parameters)
        spec_of = dict(zip(names, specs, strict=False))
        return (
            tuple(_as_spec(value, spec) for value, spec in zip(args, specs, strict=False)),
            {name: _as_spec(value, spec_of.get(name)) for name, value in kwargs.items()},
        )


def _as_spec(value: Any, spec: Any) -> Any:
    """Convert an argument, or the values in it, to tensors where the signature has tensor specs."""
    if isinstance(spec, dict) and isinstance(value, dict):
        return {name: _as_spec(item, spec.get(name)) for name, item in value.items()}
    if isinstance(spec, (list, tuple)) and isinstance(value, (list, tuple)) and len(spec) == len(value):
        return type(spec)(map(_as_spec, value, spec))
    if not isinstance(spec, TensorSpec) or isinstance(value, DistributedValues):
        return value
    try:
        tensor = convert_to_tensor(value, spec.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"Can not cast {value!r} to {spec} of the input_signature: {error}") from error
    if not spec.is_compatible_with(tensor):
        raise TypeError(f"Can not cast {value!r} to {spec} of the input_signature")
    return tensor


def _answer(result: Any) -> Any:
    """Convert the numbers, text, arrays, variables and Mirrored values in a result, also in PerReplica, to tensors."""
    if isinstance(result, _VALUES):
        return as_tensors(result)
    if isinstance(result, (Variable, Mirrored)):
        return convert_to_tensor(result)
    if isinstance(result, PerReplica):
        return PerReplica([_answer(component) for component in result.values])
    return nest.map_structure(_answer, result) if nest.is_nested(result) else result


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
    """Mark a function, as :func:`ringlet.function` does; it runs eagerly, and returns tensors.

    Parameters
    ----------
    func, autograph, jit_compile, reduce_retracing : optional
        As for :func:`ringlet.function`.
    input_signature : sequence of TensorSpec, optional
        Specs to which arguments are converted; a tensor of a different dtype or shape raises TypeError.
    experimental_implements, experimental_autograph_options, experimental_attributes : optional
    experimental_relax_shapes, experimental_compile, experimental_follow_type_hints : optional, unused

    Returns
    -------
    Function
        Without `func`, a decorator.

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
