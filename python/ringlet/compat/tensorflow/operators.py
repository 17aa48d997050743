"""Operators on arrays of one dtype, with errors where TensorFlow raises an error and NumPy returns a result.

The kinds of dtypes are b for bool, i for signed integer, u for unsigned integer, f for floating, c for complex, O for
text, and V for bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.compat.tensorflow.dtypes import dtype_name
from ringlet.errors import InvalidArgumentError
from ringlet.errors.documented_names import shown_as

Array = NDArray[Any]


@shown_as(InvalidArgumentError)
class DtypeError(InvalidArgumentError, TypeError):
    """Raised for an unsupported dtype; TensorFlow raises one of the base classes."""


def _divide(dividend: Array, divisor: Array) -> Any:
    is_small = dividend.dtype.kind in "iu" and dividend.dtype.itemsize <= 2
    return np.true_divide(dividend, divisor, dtype=np.float32 if is_small else None)


def _matmul(left: Array, right: Array) -> Any:
    return np.matmul(left, right).astype(left.dtype, copy=False)  # NumPy's result for bfloat16 is float32


def _without_zeros(function: Callable[[Array, Array], Any]) -> Callable[[Array, Array], Any]:
    def divide(dividend: Array, divisor: Array) -> Any:
        if divisor.dtype.kind in "iu" and not divisor.all():
            raise InvalidArgumentError(
                "Integer division by zero. Convert to floating-point numbers, or remove the zeros."
            )
        return function(dividend, divisor)

    return divide


# Name of the method: the operator, its implementation, and the kinds of dtypes that TensorFlow supports.
BINARY: dict[str, tuple[str, Callable[[Array, Array], Any], str]] = {
    "add": ("+", np.add, "iufcVO"),
    "sub": ("-", np.subtract, "iufcV"),
    "mul": ("*", np.multiply, "biufcV"),
    "truediv": ("/", _divide, "iufcV"),
    "floordiv": ("//", _without_zeros(np.floor_divide), "iufV"),
    "mod": ("%", _without_zeros(np.remainder), "iufV"),
    "pow": ("**", np.power, "ifcV"),
    "matmul": ("@", _matmul, "iufcV"),
    "and": ("&", np.bitwise_and, "biu"),
    "or": ("|", np.bitwise_or, "biu"),
    "xor": ("^", np.bitwise_xor, "biu"),
    "lt": ("<", np.less, "iufV"),
    "le": ("<=", np.less_equal, "iufV"),
    "gt": (">", np.greater, "iufV"),
    "ge": (">=", np.greater_equal, "iufV"),
}
UNARY: dict[str, tuple[str, Callable[[Array], Any], str]] = {
    "neg": ("-", np.negative, "ifcV"),
    "abs": ("abs", np.absolute, "ifcV"),
    "invert": ("~", np.invert, "biu"),
}
# NumPy function of an operator -> reflected method.
REFLECTED: dict[np.ufunc, str] = {
    np.add: "__radd__",
    np.subtract: "__rsub__",
    np.multiply: "__rmul__",
    np.true_divide: "__rtruediv__",
    np.floor_divide: "__rfloordiv__",
    np.remainder: "__rmod__",
    np.power: "__rpow__",
    np.bitwise_and: "__rand__",
    np.bitwise_or: "__ror__",
    np.bitwise_xor: "__rxor__",
    np.less: "__gt__",
    np.less_equal: "__ge__",
    np.greater: "__lt__",
    np.greater_equal: "__le__",
    np.equal: "__eq__",
    np.not_equal: "__ne__",
}


def check_kind(symbol: str, kinds: str, dtype: np.dtype[Any]) -> None:
    """Raise DtypeError unless an operator or a function supports the kind of a dtype."""
    if dtype.kind in kinds:
        return
    if dtype.kind == "O":
        raise DtypeError(f"{symbol} does not support tensors of strings. Apply it to x.numpy().")
    wanted = "int32" if "i" in kinds else "float32" if "f" in kinds else "bool"
    raise DtypeError(
        f"{symbol} does not support tensors of {dtype_name(dtype)}. Convert them, as in tf.cast(x, tf.{wanted})."
    )


def compute(symbol: str, function: Callable[..., Any], kinds: str, *operands: Array) -> Any:
    """Return an operator's result for arrays of one dtype; raise DtypeError unless its kind is in `kinds`.

    Raises InvalidArgumentError if the shapes do not match, or if an integer is divided by zero or has a negative
    exponent.
    """
    check_kind(f"the operator {symbol}", kinds, operands[0].dtype)
    try:
        return function(*operands)
    except ValueError as error:
        raise InvalidArgumentError(f"{str(error).rstrip('. ')}, in {symbol}") from error
