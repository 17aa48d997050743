"""Supported dtypes of collectives, the operations on them, and the dtypes of results.

The 8-bit floats and bfloat16 come from ml_dtypes, which is only imported by :func:`dtype_named`: a program that has
such arrays has imported it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from ringlet import _core
from ringlet.collectives.argument_parsing import shortened
from ringlet.collectives.op import Op
from ringlet.errors import InvalidArgumentError

Array = np.ndarray[Any, np.dtype[Any]]
DType = np.dtype[Any]

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")

NUMPY_NAMES = ("bool", *_INTEGERS, *_FLOATS, *_COMPLEX)
"""The NumPy dtypes that collectives support."""

ML_NAMES = (
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
)
"""The dtypes of ml_dtypes that collectives support."""

# The operations that each kind of dtype supports.
_OPS: dict[str, frozenset[Op]] = {
    "bool": frozenset({Op.MIN, Op.MAX, Op.AND, Op.OR, Op.XOR}),
    "integer": frozenset(Op),
    "float": frozenset({Op.SUM, Op.MEAN, Op.MIN, Op.MAX, Op.PROD}),
    "complex": frozenset({Op.SUM, Op.MEAN, Op.PROD}),
}

# Supported dtypes in native byte order and their kinds. Those of ml_dtypes are registered on first use.
_KINDS: dict[DType, str] = {
    **{np.dtype(name): "integer" for name in _INTEGERS},
    **{np.dtype(name): "float" for name in _FLOATS},
    **{np.dtype(name): "complex" for name in _COMPLEX},
    np.dtype("bool"): "bool",
}


def is_known(dtype: DType) -> bool:
    """Return whether the core supports a dtype without conversion; False for non-native byte order."""
    return dtype in _KINDS or _register(dtype)


def _register(dtype: DType) -> bool:
    """Register a dtype of ml_dtypes with the core; return False if the dtype is not supported."""
    if dtype.type.__module__ != "ml_dtypes" or dtype.name not in ML_NAMES:
        return False
    _core.register_dtype(dtype.name, dtype)
    _KINDS[dtype] = "float"
    return True


def dtype_named(name: str) -> DType:
    """Return a supported dtype by its name."""
    if name not in ML_NAMES:
        return np.dtype(name)
    try:
        package = importlib.import_module("ml_dtypes")
    except ImportError:
        raise ImportError(
            f"the dtype {name} is defined by the package ml_dtypes, which is not installed: pip install ml_dtypes"
        ) from None
    dtype: DType = np.dtype(getattr(package, name))
    _register(dtype)
    return dtype


def is_supported(dtype: DType, op: Op) -> bool:
    """Return whether collectives support an operation on a dtype, of either byte order."""
    dtype = native(dtype)
    return is_known(dtype) and op in _OPS[_KINDS[dtype]]


def native(dtype: DType) -> DType:
    """Return a dtype in native byte order; return a native dtype unchanged."""
    # The core does not parse "<" and ">", which buffers may carry even for native order. Dtypes of ml_dtypes have
    # neither character, and newbyteorder() would turn them into raw bytes.
    return dtype if dtype.byteorder in "=|" else dtype.newbyteorder("=")


def as_result(dtype: DType, op: Op) -> DType:
    """Return the dtype of a result: `dtype`, except that a mean of integers is float32 (8 and 16 bits) or float64."""
    if op is not Op.MEAN or dtype.kind not in "iu":
        return dtype
    return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)


# --- errors -----------------------------------------------------------------------------------------------------------


def check_pairs(arrays: Iterable[Any], op: Op) -> None:
    """Apply :func:`check_pair` to the dtype of each array; skip values that are not ndarrays."""
    for array in arrays:
        if isinstance(array, np.ndarray):
            check_pair(array.dtype, op)


def check_pair(dtype: DType, op: Op) -> None:
    """Raise InvalidArgumentError if a dtype is known and does not support an operation."""
    kind = _KINDS.get(native(dtype))
    if kind is not None and op not in _OPS[kind]:
        raise InvalidArgumentError(f"{op.name} does not support {native(dtype).name}: {_alternative(kind, dtype, op)}.")


def _alternative(kind: str, dtype: DType, op: Op) -> str:
    if kind == "bool":
        other = {Op.SUM: "use OR, or ", Op.PROD: "use AND, or "}.get(op, "")
        return f"{other}convert with x.astype({'float32' if op is Op.MEAN else 'int32'!r})"
    if op in (Op.MIN, Op.MAX):
        return "complex numbers have no order. Reduce abs(x), or x.real and x.imag separately"
    bits = 8 * min(dtype.itemsize, 8)
    return f"it is a bitwise operation. View the array as integers with x.view('uint{bits}')"


def refuse_dtype(value: Any, dtype: DType, name: str) -> NoReturn:
    """Raise the error for an unsupported dtype, with the supported dtypes and a conversion."""
    is_array = isinstance(value, (np.ndarray, np.generic))
    given = f"dtype {dtype}" if is_array else f"{shortened(value)} of type {type(value).__name__}"
    remedy = _remedy(dtype) if is_array else _remedy_of_object(value)
    raise InvalidArgumentError(
        f"cannot use {name}, which is {given}: collectives support bool, int8 to int64, uint8 to uint64, float16, "
        f"float32, float64, complex64, complex128, and bfloat16 and float8 of ml_dtypes. {remedy}."
    )


def _remedy_of_object(value: Any) -> str:
    if isinstance(value, str) and value.upper() in Op.__members__:
        return f"The operation is the first argument: all_reduce({value!r}, value)"
    if value is None:
        return "Compute it first, as loss.backward() does for a gradient, or pass zeros where a rank has nothing to add"
    return "Pass numbers, or an array of numbers"


def _remedy(dtype: DType) -> str:
    if dtype.names is not None:
        return f"Pass each field separately, such as x[{dtype.names[0]!r}]"
    if dtype.type.__module__ == "ml_dtypes":
        integer = dtype.name.startswith(("int", "uint"))
        other = "int8" if integer else "complex64" if "complex" in dtype.name else "float32"
        return f"Convert it first with x.astype({other!r})"
    remedies = {
        "O": "Convert numbers first with x.astype('float64')",
        "M": "View times as integers: x.view('int64')",
        "m": "View times as integers: x.view('int64')",
        "f": "Convert it first with x.astype('float64')",
        "c": "Convert it first with x.astype('complex128')",
    }
    return remedies.get(dtype.kind, "To move other data as bytes, pass x.view('uint8')")
