"""What may become the value of a variable, and how it is converted: TensorFlow's rules."""

from __future__ import annotations

import importlib
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.collectives.collective_dtypes import ML_NAMES
from ringlet.errors import InvalidArgumentError

__all__ = ["Shape", "as_dtype", "as_initial_value", "as_value", "fits", "is_floating"]

Array = NDArray[Any]
Shape = tuple["int | None", ...] | None

# Python's numbers take the dtype of the variable that they are written to.
_NUMBER_KINDS = {bool: "b", int: "i", float: "f", complex: "c"}
# Kind of a variable: kinds of Python numbers, lists and initial values that it takes.
_TAKEN = {"b": "b", "i": "ib", "f": "fib", "c": "cfi"}
# Kinds of dtypes that hold numbers (those of ml_dtypes are V), and those whose conversions to each other lose nothing.
_NUMBERS, _EXACT = "biufcV", "iuUS"
# Values that are converted as the Python numbers in them are.
_WRITTEN_OUT = (list, tuple, range)


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


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Read a dtype; that of ml_dtypes by its name, too, whether that package was imported or not.

    Parameters
    ----------
    dtype : dtype-like

    Returns
    -------
    dtype

    Raises
    ------
    TypeError
        If there is none of this name, or ml_dtypes is not installed, which has it.

    Examples
    --------
    >>> as_dtype("float32"), as_dtype("bfloat16")
    (dtype('float32'), dtype(bfloat16))
    """
    try:
        known: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        if not isinstance(dtype, str):
            raise
        try:
            package = importlib.import_module("ml_dtypes")  # for those who ask for its dtypes only
        except ImportError:
            if dtype not in ML_NAMES:
                raise error from None
            raise TypeError(
                f"the dtype {dtype!r} is one of the package ml_dtypes, which is not installed here: pip install "
                "ml_dtypes"
            ) from None
        found = getattr(package, dtype, None)
        if not isinstance(found, type):
            raise
        known = np.dtype(found)
    return known


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
    what = f"the initial value of variable '{name or 'Variable'}'"
    array = as_ndarray(value() if callable(value) else value, what)
    # Variables are in native byte order, whatever they begin with.
    wanted = (array.dtype if dtype is None else as_dtype(dtype)).newbyteorder("=")
    if array.dtype.hasobject or wanted.hasobject:
        raise TypeError(
            f"{what} is an array of Python objects, {value!r}: variables hold numbers, bools and strings of a fixed "
            "length. Give an array of one of those dtypes"
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
        Arrays must have the variable's dtype; numbers, also those of NumPy, and lists are converted.
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
        If an array has another dtype or another shape (an InvalidArgumentError), or the value is None or an object that
        is no array.
    TypeError
        If a Python number does not fit the dtype, as 1.5 does not fit an integer, or text is given for a number.

    Examples
    --------
    >>> as_value(3, np.dtype("float32"), (), "v:0")
    3
    >>> as_value(np.ones(2), np.dtype("float32"), (2,), "v:0")
    Traceback (most recent call last):
        ...
    ValueError: variable 'v:0' holds float32, and the value is an array of float64: ...
    """
    if isinstance(value, np.generic) and value.dtype != dtype and value.dtype.kind in "biufc":
        value = value.item()  # a number
    number_kind = _NUMBER_KINDS.get(type(value))
    if number_kind is not None and not shape:
        # Most kinds that there are have the letter that NumPy gives them.
        if number_kind not in _TAKEN.get(dtype.kind, "") and number_kind not in _TAKEN.get(_kind(dtype), ""):
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


def _converted(array: Array, dtype: np.dtype[Any], value: Any) -> Array:
    # An empty list is no list of floats, whatever NumPy makes of it.
    if array.size and _kind(array.dtype) not in _TAKEN.get(_kind(dtype), _kind(dtype)):
        _refuse_conversion(value, dtype)
    converted = array.astype(dtype)
    # Integers never wrap on the way, and text is not cut off.
    if array.dtype.kind in _EXACT and dtype.kind in _EXACT and not np.array_equal(converted, array):
        _refuse_conversion(value, dtype)
    return converted


def _spelled(dtype: np.dtype[Any]) -> str:
    """What np.dtype reads; the names of texts are none: str32 is <U1."""
    return str(dtype.str if dtype.kind in "US" else dtype.name)


def _refuse_conversion(value: Any, dtype: np.dtype[Any]) -> NoReturn:
    given = np.asarray(value).dtype
    if given.kind in _NUMBERS and dtype.kind in _NUMBERS:
        remedy = f"convert it yourself, for example with np.asarray(value).astype({_spelled(dtype)!r})"
    else:
        remedy = f"give numbers, a list of them or an array of {dtype}" if dtype.kind in _NUMBERS else "give what fits"
    raise TypeError(f"Cannot convert {value!r} to an array of dtype {dtype}: {remedy}")


def _check_dtype(value: Any, array: Array, dtype: np.dtype[Any], name: str | None) -> None:
    """Refuse what is not written out as numbers, unless it has the variable's dtype but for the order of bytes."""
    owner = "the variable" if name is None else f"variable '{name}'"
    if isinstance(value, (str, bytes)):
        return  # fits if the variable holds text
    if value is None:
        raise ValueError(f"None values not supported: {owner} holds {dtype}. Give an array, or leave out the call")
    if array.dtype.hasobject and not hasattr(value, "dtype"):
        raise ValueError(
            f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to an array of {dtype}, "
            f"which {owner} holds: give an array, or the list of its elements"
        )
    if array.dtype.newbyteorder("=") != dtype:
        array_like = "value" if hasattr(value, "astype") else "np.asarray(value)"
        remedy = f"{array_like}.astype({_spelled(dtype)!r})"
        kind = kind_of(value)
        if kind is not None and kind.name == "torch.Tensor":
            remedy = f"value.to(torch.{_spelled(dtype)})"
        raise ValueError(
            f"{owner} holds {dtype}, and the value is an array of {array.dtype}: values of arrays are never "
            f"converted on the way into a variable. Write {remedy}"
        )
