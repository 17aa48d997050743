"""Which dtypes collectives move, which operations combine them, and what comes out: one table, and its refusals.

The 8-bit floats and bfloat16 are those of ml_dtypes, which is known here by name only: whoever has such an array has
imported it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from ringlet import _core
from ringlet.collectives.argument_parsing import shortened
from ringlet.collectives.op import Op
from ringlet.errors import InvalidArgumentError

__all__ = ["ML_NAMES", "NUMPY_NAMES", "as_result", "check_pair", "check_pairs", "is_known", "native", "refuse_dtype"]

Array = np.ndarray[Any, np.dtype[Any]]
DType = np.dtype[Any]

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")

NUMPY_NAMES = ("bool", *_INTEGERS, *_FLOATS, *_COMPLEX)
"""The dtypes of NumPy that collectives take."""

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
"""The dtypes of ml_dtypes that collectives take."""

# Kind of dtype: the operations that combine it.
_OPS: dict[str, frozenset[Op]] = {
    "bool": frozenset({Op.MIN, Op.MAX, Op.AND, Op.OR, Op.XOR}),
    "integer": frozenset(Op),
    "float": frozenset({Op.SUM, Op.MEAN, Op.MIN, Op.MAX, Op.PROD}),
    "complex": frozenset({Op.SUM, Op.MEAN, Op.PROD}),
}

# Known dtypes, in native byte order, and their kinds. Those of ml_dtypes are added at first sight.
_KINDS: dict[DType, str] = {
    **{np.dtype(name): "integer" for name in _INTEGERS},
    **{np.dtype(name): "float" for name in _FLOATS},
    **{np.dtype(name): "complex" for name in _COMPLEX},
    np.dtype("bool"): "bool",
}


def is_known(dtype: DType) -> bool:
    """Tell whether the core can work on arrays of a dtype as they are.

    Parameters
    ----------
    dtype : dtype

    Returns
    -------
    bool
        False for other byte orders. Types of C that are another name for a known one (``np.longlong``) are known.

    Examples
    --------
    >>> is_known(np.dtype("float16")), is_known(np.dtype(">i4")), is_known(np.dtype(object))
    (True, False, False)
    """
    return dtype in _KINDS or _register(dtype)


def _register(dtype: DType) -> bool:
    """Introduce a dtype of ml_dtypes to the core, which cannot import it; False if it is none that it knows."""
    if dtype.type.__module__ != "ml_dtypes" or dtype.name not in ML_NAMES:
        return False
    _core.register_dtype(dtype.name, dtype)
    _KINDS[dtype] = "float"
    return True


def native(dtype: DType) -> DType:
    """Give a dtype in the byte order of this machine; the same object if it needs no change.

    Examples
    --------
    >>> native(np.dtype(">i4"))
    dtype('int32')
    """
    # The core reads no "<" or ">", which the buffer protocol leaves even where it is the order of this machine. A dtype
    # of ml_dtypes has none of these: newbyteorder() would make plain bytes of it.
    return dtype if dtype.byteorder in "=|" else dtype.newbyteorder("=")


def as_result(dtype: DType, op: Op) -> DType:
    """Give the dtype of a reduction's result.

    Parameters
    ----------
    dtype : dtype
        A known one.
    op : Op

    Returns
    -------
    dtype
        `dtype`, but for the mean of integers: float32 for 8 and 16 bits, else float64, as TensorFlow's are.

    Examples
    --------
    >>> as_result(np.dtype("int32"), Op.MEAN), as_result(np.dtype("uint8"), Op.MEAN)
    (dtype('float64'), dtype('float32'))
    """
    if op is not Op.MEAN or dtype.kind not in "iu":
        return dtype
    return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)


# --- refusals ---------------------------------------------------------------------------------------------------------


def check_pairs(arrays: Iterable[Any], op: Op) -> None:
    """Apply :func:`check_pair` to each array; values that are none have no pair to refuse.

    Examples
    --------
    >>> check_pairs([np.zeros(2), np.zeros(2, "int8")], Op.MAX)
    """
    for array in arrays:
        if isinstance(array, np.ndarray):
            check_pair(array.dtype, op)


def check_pair(dtype: DType, op: Op) -> None:
    """Refuse an operation that has no meaning for a dtype.

    Raises
    ------
    InvalidArgumentError
        If the dtype is known and `op` does not combine it; it says what to do instead.

    Examples
    --------
    >>> check_pair(np.dtype("bool"), Op.SUM)
    Traceback (most recent call last):
    ringlet.errors.InvalidArgumentError: there is no SUM of bool: use OR, or convert with x.astype('int32').
    """
    kind = _KINDS.get(native(dtype))
    if kind is not None and op not in _OPS[kind]:
        raise InvalidArgumentError(f"there is no {op.name} of {native(dtype).name}: {_instead(kind, dtype, op)}.")


def _instead(kind: str, dtype: DType, op: Op) -> str:
    if kind == "bool":
        other = {Op.SUM: "use OR, or ", Op.PROD: "use AND, or "}.get(op, "")
        return f"{other}convert with x.astype({'float32' if op is Op.MEAN else 'int32'!r})"
    if op in (Op.MIN, Op.MAX):
        return "complex numbers have no order. Reduce abs(x), or x.real and x.imag each by itself"
    bits = 8 * min(dtype.itemsize, 8)
    return f"it works on bits. View them as integers with x.view('uint{bits}')"


def refuse_dtype(value: Any, dtype: DType, name: str) -> NoReturn:
    """Raise what tells the dtypes that are taken, and how to get to one of them.

    Parameters
    ----------
    value : object
        What the caller gave.
    dtype : dtype
        What NumPy made of it.
    name : str
        What messages call the value.

    Raises
    ------
    InvalidArgumentError

    Examples
    --------
    >>> refuse_dtype(None, np.dtype(object), "the array")
    Traceback (most recent call last):
    ringlet.errors.InvalidArgumentError: cannot use the array, which is None of type NoneType: collectives take ...
    """
    is_array = isinstance(value, (np.ndarray, np.generic))
    given = f"dtype {dtype}" if is_array else f"{shortened(value)} of type {type(value).__name__}"
    remedy = _remedy(dtype) if is_array else "Give numbers, or an array of them"
    raise InvalidArgumentError(
        f"cannot use {name}, which is {given}: collectives take bool, int8 to int64, uint8 to uint64, float16, "
        f"float32, float64, complex64, complex128, and bfloat16 and float8 of ml_dtypes. {remedy}."
    )


def _remedy(dtype: DType) -> str:
    if dtype.names is not None:
        return f"Give each field by itself, such as x[{dtype.names[0]!r}]"
    if dtype.type.__module__ == "ml_dtypes":
        integer = dtype.name.startswith(("int", "uint"))
        other = "int8" if integer else "complex64" if "complex" in dtype.name else "float32"
        return f"Convert it first with x.astype({other!r})"
    remedies = {
        "O": "Convert numbers first with x.astype('float64')",
        "M": "Use the integers that times are made of: x.view('int64')",
        "m": "Use the integers that times are made of: x.view('int64')",
        "f": "Convert it first with x.astype('float64')",
        "c": "Convert it first with x.astype('complex128')",
    }
    return remedies.get(dtype.kind, "To move bytes that are no numbers, view them as such: x.view('uint8')")
