"""Any array as a buffer that the core can read, and any array as a place for its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ringlet.collectives.op import Op
from ringlet.errors import InvalidArgumentError

__all__ = ["Outputs", "apart_from", "as_buffer", "as_buffers", "as_ndarray", "as_result"]

Array = np.ndarray[Any, np.dtype[Any]]

_DTYPES = ("float32", "float64", "int32", "int64")
_SUPPORTED = frozenset(np.dtype(name) for name in _DTYPES)


def as_buffer(value: Any, name: str = "the array") -> Array:
    """Give an array that the core can read: contiguous, aligned, in native byte order.

    Parameters
    ----------
    value : array-like
        An ndarray of any layout, a Python or NumPy scalar, nested lists, or an object with the buffer protocol,
        ``__array__`` or ``__dlpack__``. An array that already fits is returned as it is; others are copied.
    name : str
        What messages call the value.

    Returns
    -------
    ndarray
        Of the same shape and values. Read-only inputs stay read-only.

    Raises
    ------
    InvalidArgumentError
        If the dtype is none that collectives take, or the value is a masked array, whose mask would be lost.

    Examples
    --------
    >>> as_buffer(np.arange(6, dtype=">i4")[::2])
    array([0, 2, 4], dtype=int32)
    """
    array = value if type(value) is np.ndarray else as_ndarray(value, name)
    if array.dtype not in _SUPPORTED:
        native = array.dtype.newbyteorder("=")
        if native not in _SUPPORTED:
            _refuse_dtype(value, array.dtype, name)
        array = array.astype(native)
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned):
        array = np.array(array, order="C")
    return array


def as_buffers(values: Sequence[Any]) -> list[Array]:
    """Give :func:`as_buffer` of each value; messages tell which one is at fault.

    Examples
    --------
    >>> as_buffers([1.5, [2, 3]])
    [array(1.5), array([2, 3])]
    """
    if len(values) == 1:
        return [as_buffer(values[0])]
    return [as_buffer(value, f"array {number} of {len(values)}") for number, value in enumerate(values)]


def as_ndarray(value: Any, name: str = "the array") -> Array:
    """Give the ndarray of a value, of any dtype and layout, without a copy where there can be one.

    Raises
    ------
    InvalidArgumentError
        If the value is a masked array, whose mask would be lost.

    Examples
    --------
    >>> as_ndarray([1, 2])
    array([1, 2])
    """
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidArgumentError(
            f"{name} is a masked array, whose mask would be lost. Combine x.filled(0) and the mask each by itself."
        )
    if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        return np.asarray(np.from_dlpack(value))
    return np.asarray(value)


def _refuse_dtype(value: Any, dtype: np.dtype[Any], name: str) -> NoReturn:
    given = f"dtype {dtype}" if isinstance(value, np.ndarray) else f"{_shortened(value)} of type {type(value).__name__}"
    remedy = "Convert it first, for example with x.astype('float32')." if dtype.kind in "fiub" else "Give real numbers."
    raise InvalidArgumentError(
        f"cannot combine {name}, which is {given}: collectives take {', '.join(_DTYPES[:-1])} and {_DTYPES[-1]}. "
        f"{remedy}"
    )


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def as_result(dtype: np.dtype[Any], op: Op) -> np.dtype[Any]:
    """Give the dtype of a reduction's result.

    The mean of integers is a float64, as TensorFlow's is.

    Examples
    --------
    >>> as_result(np.dtype("int32"), Op.MEAN)
    dtype('float64')
    """
    return np.dtype(np.float64) if op is Op.MEAN and dtype.kind == "i" else dtype


class Outputs:
    """Arrays that a caller wants results in, and what the core is given to fill instead.

    Parameters
    ----------
    outs : sequence of ndarray
        One writeable array for each buffer, of any layout and byte order.
    buffers : sequence of ndarray
        The inputs, as :func:`as_buffer` gave them. One that overlaps its own output in part is replaced by a copy.
    op : Op
        What the result's dtype depends on.

    Raises
    ------
    InvalidArgumentError
        If an output is no array, is read-only, or has another shape or dtype than its result.
    """

    def __init__(self, outs: Sequence[Any], buffers: list[Array], op: Op) -> None:
        if len(outs) != len(buffers):
            raise InvalidArgumentError(f"out has {len(outs)} arrays for {len(buffers)} inputs: give one for each.")
        self._outs = list(outs)
        for out, buffer in zip(outs, buffers, strict=True):
            _check_output(out, buffer, as_result(buffer.dtype, op))
        self.direct: list[Array] = [
            out if _is_direct(out) else np.empty(out.shape, out.dtype.newbyteorder("=")) for out in outs
        ]
        buffers[:] = [apart_from(out, buffer) for out, buffer in zip(self.direct, buffers, strict=True)]

    def store(self) -> list[Array]:
        """Bring the results to where the caller wants them, and return the caller's arrays."""
        for out, filled in zip(self._outs, self.direct, strict=True):
            if out is not filled:
                out[...] = filled
        return self._outs


def _is_direct(out: Array) -> bool:
    return bool(type(out) is np.ndarray and out.flags.c_contiguous and out.flags.aligned and out.dtype.isnative)


def apart_from(out: Array, buffer: Array) -> Array:
    """Give `buffer`, or a copy if it shares a part, but not all, of its memory with `out`.

    An input that is its own output is read before it is written, element by element; one that overlaps it is not.

    Examples
    --------
    >>> x = np.arange(4)
    >>> apart_from(x, x) is x, apart_from(x[1:], x[:-1]) is x
    (True, False)
    """
    if out is buffer or not np.may_share_memory(out, buffer):
        return buffer
    is_same_memory = out.ctypes.data == buffer.ctypes.data and out.nbytes == buffer.nbytes
    return buffer if is_same_memory else buffer.copy()


def _check_output(out: Any, buffer: Array, dtype: np.dtype[Any]) -> None:
    if not isinstance(out, np.ndarray):
        raise InvalidArgumentError(f"out is a {type(out).__name__}: expected a writeable ndarray.")
    if out.shape != buffer.shape or out.dtype.newbyteorder("=") != dtype:
        raise InvalidArgumentError(
            f"out is {out.dtype}{list(out.shape)}: the result is {dtype}{list(buffer.shape)}. "
            f"Make one with np.empty({buffer.shape}, {dtype.name!r})."
        )
    if not out.flags.writeable:
        raise InvalidArgumentError("out is read-only: give an array that may be written, for example out.copy().")
