"""Conversion of values for variables, with TensorFlow's rules."""

from __future__ import annotations

import functools
import importlib
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.argument_parsing import shortened
from ringlet.collectives.buffers import as_ndarray
from ringlet.collectives.collective_dtypes import ML_NAMES
from ringlet.errors import InvalidArgumentError

Array = NDArray[Any]
Shape = tuple["int | None", ...] | None

# Kinds of Python numbers, which are converted to the dtype of the variable.
_NUMBER_KINDS = {bool: "b", int: "i", float: "f", complex: "c"}
# Accepted kinds of Python numbers, lists and initial values, by the kind of the variable's dtype.
_TAKEN = {"b": "b", "i": "ib", "f": "fib", "c": "cfi"}
# Numeric kinds (V: ml_dtypes), and kinds whose conversions must be exact.
_NUMBERS, _EXACT = "biufcV", "iuUS"
# Containers, which are converted like the Python numbers in them.
_WRITTEN_OUT = (list, tuple, range)


def _kind(dtype: np.dtype[Any]) -> str:
    """Return the kind of a dtype: "i" for any integer, "f" for any float, including the dtypes of ml_dtypes."""
    if dtype.kind == "u":
        return "i"
    if dtype.kind == "V" and dtype.names is None:
        name = dtype.name
        return "f" if name.startswith(("bfloat", "float")) else "i" if name.startswith(("int", "uint")) else "V"
    return dtype.kind


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is floating-point."""
    return _kind(dtype) == "f"


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Return a dtype; dtypes of ml_dtypes are found by name, even if that package is not imported yet."""
    try:
        known: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        if not isinstance(dtype, str):
            raise
        try:
            package = importlib.import_module("ml_dtypes")
        except ImportError:
            if dtype not in ML_NAMES:
                raise error from None
            raise TypeError(
                f"the dtype {dtype!r} is defined by the package ml_dtypes, which is not installed: pip install "
                "ml_dtypes"
            ) from None
        found = getattr(package, dtype, None)
        if not isinstance(found, type):
            raise
        known = np.dtype(found)
    return known


def as_initial_value(value: Any, dtype: Any, name: str | None) -> Array:
    """Convert an initial value, or the result of a callable, to an array, which may share the value's memory."""
    what = f"the initial value of variable '{name or 'Variable'}'"
    array = as_ndarray(value() if callable(value) else value, what)
    wanted = (array.dtype if dtype is None else as_dtype(dtype)).newbyteorder("=")
    if array.dtype.hasobject or wanted.hasobject:
        raise TypeError(
            f"{what} is an array of Python objects, {shortened(value)}: variables hold numbers, bools and "
            "strings of a fixed "
            "length. Pass an array of such a dtype"
        )
    return array if array.dtype == wanted else _converted(array, wanted, value)


def fits(shape: tuple[int, ...], wanted: Shape) -> bool:
    """Return whether a shape matches `wanted`, where None stands for any size."""
    return wanted is None or (
        len(shape) == len(wanted) and all(size in (None, given) for given, size in zip(shape, wanted, strict=True))
    )


def as_value(value: Any, dtype: np.dtype[Any], shape: Shape, name: str | None) -> Any:
    """Convert a value for a variable: return an array of the variable's dtype, or a Python number.

    Arrays must have the variable's dtype, in any byte order; Python and NumPy numbers, strings and lists are converted.
    """
    if isinstance(value, np.generic) and value.dtype != dtype and value.dtype.kind in "biufc":
        value = value.item()
    number_kind = _NUMBER_KINDS.get(type(value))
    if number_kind is not None and not shape:
        # dtype.kind decides most cases without a call of _kind.
        if number_kind not in _TAKEN.get(dtype.kind, "") and number_kind not in _TAKEN.get(_kind(dtype), ""):
            _refuse_conversion(value, dtype)
        if dtype.kind in "iu" and value not in _values_of(dtype):
            _refuse_conversion(value, dtype)
        return value
    array: Array = value if type(value) is np.ndarray else as_ndarray(value)
    if array.dtype != dtype:
        if number_kind is None and not isinstance(value, _WRITTEN_OUT):
            _check_dtype(value, array, dtype, name)
        array = _converted(array, dtype, value)
    if shape is not None and array.shape != shape and not fits(array.shape, shape):
        raise InvalidArgumentError(
            f"Cannot assign value to variable '{name}': Shape mismatch. The variable shape {shape}, and the assigned "
            f"value shape {array.shape} are incompatible. Reshape the value, or broadcast it with "
            f"np.broadcast_to(value, {shape})"
        )
    return array


@functools.cache
def _values_of(dtype: np.dtype[Any]) -> range:
    limits = np.iinfo(dtype)
    return range(int(limits.min), int(limits.max) + 1)


def _converted(array: Array, dtype: np.dtype[Any], value: Any) -> Array:
    # NumPy gives an empty list the dtype float64; it converts to any dtype.
    if array.size and _kind(array.dtype) not in _TAKEN.get(_kind(dtype), _kind(dtype)):
        _refuse_conversion(value, dtype)
    converted = array.astype(dtype)
    # Integers must not wrap, and text must not be truncated.
    if array.dtype.kind in _EXACT and dtype.kind in _EXACT and not np.array_equal(converted, array):
        _refuse_conversion(value, dtype)
    return converted


def _dtype_spelling(dtype: np.dtype[Any]) -> str:
    """Return a name of a dtype that np.dtype accepts, such as ``<U1`` instead of the name ``str32``."""
    return str(dtype.str if dtype.kind in "US" else dtype.name)


def _refuse_conversion(value: Any, dtype: np.dtype[Any]) -> NoReturn:
    given = np.asarray(value).dtype
    if dtype.kind in "iu" and (given.kind in "iu" or type(value) is int):  # integers beyond 64 bits have dtype object
        fitting = _values_of(dtype)
        remedy = f"it holds {fitting[0]} to {fitting[-1]}. Choose a wider dtype for the variable"
    elif given.kind in _NUMBERS and dtype.kind in _NUMBERS:
        remedy = f"convert it yourself, for example with np.asarray(value).astype({_dtype_spelling(dtype)!r})"
    else:
        remedy = (
            f"pass numbers, a list of numbers or an array of {dtype}" if dtype.kind in _NUMBERS else f"pass {dtype}"
        )
    raise TypeError(f"Cannot convert {shortened(value)} to an array of dtype {dtype}: {remedy}")


def _check_dtype(value: Any, array: Array, dtype: np.dtype[Any], name: str | None) -> None:
    """Raise an error unless a value is a string, or an array of the variable's dtype in any byte order."""
    owner = "the variable" if name is None else f"variable '{name}'"
    if isinstance(value, (str, bytes)):
        return  # strings can always be converted
    if value is None:
        raise ValueError(f"None values not supported: {owner} holds {dtype}. Pass an array, or omit the call")
    if array.dtype.hasobject and not hasattr(value, "dtype"):
        raise ValueError(
            f"Attempt to convert a value ({shortened(value)}) with an unsupported type ({type(value)}) to an "
            f"array of {dtype}, "
            f"which {owner} holds: pass an array, or a list of its elements"
        )
    if array.dtype.newbyteorder("=") != dtype:
        array_like = "value" if hasattr(value, "astype") else "np.asarray(value)"
        remedy = f"{array_like}.astype({_dtype_spelling(dtype)!r})"
        kind = kind_of(value)
        if kind is not None and kind.name == "torch.Tensor":
            remedy = f"value.to(torch.{_dtype_spelling(dtype)})"
        raise ValueError(
            f"{owner} holds {dtype}, but the value is an array of {array.dtype}: arrays are not converted "
            f"implicitly. Write {remedy}"
        )
