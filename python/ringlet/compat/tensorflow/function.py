"""tf.function: ringlet's, whose answers are tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet import nest
from ringlet.compat.tensorflow.elements import as_tensors
from ringlet.functions import Function
from ringlet.functions import function as mark_function

__all__ = ["TensorFunction", "function"]

# What a function's answers are made tensors of.
_VALUES = (bool, int, float, complex, str, bytes, np.ndarray, np.generic)


class TensorFunction(Function[..., Any]):
    """A function whose numbers and arrays are tensors for who calls it. Made by ``tf.function``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the Python function."""
        result = self.python_function(*args, **kwargs)
        if isinstance(result, _VALUES):
            return as_tensors(result)
        return nest.map_structure(_answer, result) if nest.is_nested(result) else result


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
    func, input_signature, autograph, jit_compile, reduce_retracing : optional
        As :func:`ringlet.function` takes them.
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
