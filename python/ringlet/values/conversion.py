"""What may become the value of a variable, and how it is converted: TensorFlow's rules."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives.buffers import as_ndarray

__all__ = ["Shape", "as_initial_value", "as_value", "fits", "is_floating"]

Array = NDArray[Any]
Shape = tuple["int | None", ...] | None

# Python's numbers take the dtype of the variable that they are written to.
_NUMBER_KINDS = {bool: "b", int: "i", float: "f", complex: "c"}
# Kind of a variable: kinds of Python numbers, lists and initial values that it takes.
_TAKEN = {"b": "b", "i": "i", "f": "fi", "c": "cfi"}


def _kind(dtype: np.dtype[Any]) -> str:
    """One letter for what a dtype holds; numbers of ml_dtypes count as those that they are."""
    if dtype.kind == "u":
        return "i"
    if dtype.kind == "V" and dtype.names is None:
        name = dtype.name
        return "f" if name.startswith(("bfloat", "float")) else "i" if name.startswith(("int", "uint")) else "V"
    return dtype.kind


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Tell whether a dtype holds floating-point numbers.

    Examples
    --------
    >>> is_floating(np.dtype("float32")), is_floating(np.dtype("complex64"))
    (True, False)
    """
    return _kind(dtype) == "f"


def as_initial_value(value: Any, dtype: Any, name: str | None) -> Array:
    """Give the array that a variable begins with.

    Parameters
    ----------
    value : array-like or callable
        A callable without arguments gives the value.
    dtype : dtype-like or None
        What the variable is to hold; None for what NumPy makes of the value.
    name : str or None
        Of the variable.

    Returns
    -------
    ndarray
        May share the memory of `value`.

    Raises
    ------
    TypeError
        If the value does not fit the dtype, as 1.5 does not fit an integer, or consists of Python objects.

    Examples
    --------
    >>> as_initial_value(lambda: [1, 2], np.float32, "v")
    array([1., 2.], dtype=float32)
    """
    array = as_ndarray(value() if callable(value) else value, f"the initial value of variable {name}")
    # Variables are in native byte order, whatever they begin with.
    wanted = (array.dtype if dtype is None else np.dtype(dtype)).newbyteorder("=")
    if array.dtype.hasobject or wanted.hasobject:
        raise TypeError(
            f"the initial value of variable {name} is an array of Python objects, {value!r}: variables hold numbers, "
            "bools and strings of a fixed length. Give an array of one of those dtypes"
        )
    return array if array.dtype == wanted else _converted(array, wanted, value)


def fits(shape: tuple[int, ...], wanted: Shape) -> bool:
    """Tell whether a shape is one that is wanted, where None stands for any size.

    Examples
    --------
    >>> fits((5, 2), (None, 2)), fits((5, 2), None), fits((5,), (None, 2))
    (True, True, False)
    """
    return wanted is None or (
        len(shape) == len(wanted) and all(size in (None, given) for given, size in zip(shape, wanted, strict=True))
    )


def as_value(value: Any, dtype: np.dtype[Any], shape: Shape, name: str | None) -> Any:
    """Give what can be written to a variable as it is: an array of its dtype, or a Python number.

    Parameters
    ----------
    value : array-like
        Arrays and NumPy scalars must have the variable's dtype; Python numbers and lists are converted.
    dtype : dtype
        The variable's.
    shape : tuple of int or None, or None
        The variable's; None in place of a size, or of the whole, if any will do.
    name : str or None
        Of the variable, if it is known.

    Returns
    -------
    ndarray or number

    Raises
    ------
    ValueError
        If an array has another dtype or another shape.
    TypeError
        If a Python number does not fit the dtype, as 1.5 does not fit an integer.

    Examples
    --------
    >>> as_value(3, np.dtype("float32"), (), "v:0")
    3
    >>> as_value(np.ones(2), np.dtype("float32"), (2,), "v:0")
    Traceback (most recent call last):
        ...
    ValueError: variable 'v:0' holds float32, and the value is an array of float64: ...
    """
    number_kind = _NUMBER_KINDS.get(type(value))
    if number_kind is not None and not shape:
        # Most kinds that there are have the letter that NumPy gives them.
        if number_kind not in _TAKEN.get(dtype.kind, "") and number_kind not in _TAKEN.get(_kind(dtype), ""):
            _refuse_conversion(value, dtype)
        return value
    array: Array = value if type(value) is np.ndarray else as_ndarray(value)
    if array.dtype != dtype:
        is_list = number_kind is not None or isinstance(value, (list, tuple))
        if not is_list and array.dtype.newbyteorder("=") != dtype:
            _refuse_dtype(array, dtype, name)
        array = _converted(array, dtype, value)
    if shape is not None and array.shape != shape and not fits(array.shape, shape):
        raise ValueError(
            f"Cannot assign value to variable '{name}': Shape mismatch. The variable shape {shape}, and the assigned "
            f"value shape {array.shape} are incompatible. Reshape the value, or broadcast it with "
            f"np.broadcast_to(value, {shape})"
        )
    return array


def _converted(array: Array, dtype: np.dtype[Any], value: Any) -> Array:
    # An empty list is no list of floats, whatever NumPy makes of it.
    if array.size and _kind(array.dtype) not in _TAKEN.get(_kind(dtype), _kind(dtype)):
        _refuse_conversion(value, dtype)
    converted = array.astype(dtype)
    # Integers never wrap on the way.
    if array.dtype.kind in "iu" and dtype.kind in "iu" and not np.array_equal(converted, array):
        _refuse_conversion(value, dtype)
    return converted


def _refuse_conversion(value: Any, dtype: np.dtype[Any]) -> NoReturn:
    raise TypeError(
        f"Cannot convert {value!r} to an array of dtype {dtype}: convert it yourself, for example with "
        f"np.asarray(value).astype({dtype.name!r})"
    )


def _refuse_dtype(array: Array, dtype: np.dtype[Any], name: str | None) -> NoReturn:
    owner = "the variable" if name is None else f"variable '{name}'"
    raise ValueError(
        f"{owner} holds {dtype}, and the value is an array of {array.dtype}: values of arrays are never "
        f"converted on the way into a variable. Write value.astype({dtype.name!r})"
    )
