"""Any array as a buffer that the core can read, and any array as a place for its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.argument_parsing import axis_in
from ringlet.collectives.collective_dtypes import as_result, is_known, native, refuse_dtype
from ringlet.collectives.op import Op
from ringlet.errors import InvalidArgumentError

__all__ = [
    "Array",
    "Output",
    "Outputs",
    "apart_from",
    "as_buffer",
    "as_buffers",
    "as_ndarray",
    "is_direct",
    "is_view_of",
    "read_first",
]

Array = np.ndarray[Any, np.dtype[Any]]


# --- inputs -----------------------------------------------------------------------------------------------------------


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
    dtype = native(array.dtype)
    if not is_known(dtype):
        refuse_dtype(value, array.dtype, name)
    if dtype is not array.dtype:
        array = array.view(dtype) if array.dtype.isnative else array.astype(dtype)
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
        If the value is a masked array, whose mask would be lost, or one that NumPy cannot read: a tensor on another
        device, for example.

    Examples
    --------
    >>> as_ndarray([1, 2])
    array([1, 2])
    """
    if type(value) is np.ndarray:
        return value
    kind = kind_of(value)
    if kind is not None:
        return kind.as_ndarray(value, name)
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidArgumentError(
            f"{name} is a masked array, whose mask would be lost. Combine x.filled(0) and the mask each by itself."
        )
    if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        try:
            return np.asarray(np.from_dlpack(value))
        except (BufferError, RuntimeError, TypeError) as error:
            raise InvalidArgumentError(
                f"{name} is a {type(value).__name__} that NumPy cannot read by DLPack: {error}. "
                "Give an array in the memory of the CPU, of a dtype that NumPy has."
            ) from error
    return np.asarray(value)


# --- outputs ----------------------------------------------------------------------------------------------------------


def is_direct(out: Array) -> bool:
    """Tell whether the core can write to an array as it is.

    Examples
    --------
    >>> is_direct(np.zeros(4)), is_direct(np.zeros(4)[::2])
    (True, False)
    """
    return type(out) is np.ndarray and out.flags.c_contiguous and out.flags.aligned and native(out.dtype) is out.dtype


class Output:
    """An array that a caller wants a result in, and what the core is given to fill instead.

    Parameters
    ----------
    out : ndarray or array of another library
        Writeable, of any layout and byte order.
    shape : tuple of int or None, optional
        What the result has; None in place of a size, or of the whole, where only the core will know.
    dtype : dtype, optional
        What the result has.
    axis : int
        Which axis of `out` the core has first; negative ones count from the last.

    Attributes
    ----------
    direct : ndarray
        `out` with `axis` first, or fresh memory where the core cannot write to that.

    Raises
    ------
    InvalidArgumentError
        If `out` is no array, is read-only, or has another shape or dtype than the result.

    Examples
    --------
    >>> out = np.zeros(6)[::2]
    >>> output = Output(out, (3,), np.dtype(float))
    >>> output.direct[:] = 1
    >>> output.store() is out, out
    (True, array([1., 1., 1.]))
    """

    __slots__ = ("_given", "_out", "_target", "direct")

    def __init__(
        self,
        out: Any,
        shape: tuple[int | None, ...] | None = None,
        dtype: np.dtype[Any] | None = None,
        *,
        axis: int = 0,
    ) -> None:
        self._given = out
        self._out = out = _writeable(out)
        _check_output(out, shape, dtype)
        self._target: Array = np.moveaxis(out, axis_in(out.ndim, axis), 0) if axis else out
        is_usable = is_direct(self._target)
        self.direct: Array = self._target if is_usable else np.empty(self._target.shape, native(out.dtype))

    @property
    def is_direct(self) -> bool:
        """Whether the core writes to where the caller wants the result."""
        return self._target is self.direct

    def store(self) -> Any:
        """Bring the result to where the caller wants it, and return the caller's array."""
        if not self.is_direct:
            self._target[...] = self.direct
        return self._written()

    def fill(self, result: Array) -> Any:
        """Put a result where the caller wants it, and return the caller's array.

        Raises
        ------
        InvalidArgumentError
            If it has another shape.
        """
        if result.shape != self._out.shape:
            _refuse_output(self._out, result.shape, result.dtype)
        self._out[...] = result
        return self._written()

    def _written(self) -> Any:
        kind = kind_of(self._given)
        if kind is not None:
            kind.note_write(self._given)
        return self._given


class Outputs:
    """One :class:`Output` for each of many results that have the shapes of their inputs.

    Parameters
    ----------
    outs : sequence of ndarray
        One writeable array for each buffer, of any layout and byte order.
    buffers : list of ndarray
        The inputs, as :func:`as_buffer` gave them. One that overlaps its own output in part is replaced by a copy.
    op : Op, optional
        What the result's dtype depends on; none where values are only moved.

    Raises
    ------
    InvalidArgumentError
        If an output is no array, is read-only, or has another shape or dtype than its result.

    Examples
    --------
    >>> outputs = Outputs([np.zeros(2)], [np.array([1, 2])], Op.MEAN)
    >>> outputs.direct[0].dtype
    dtype('float64')
    """

    def __init__(self, outs: Sequence[Any], buffers: list[Array], op: Op | None = None) -> None:
        if len(outs) != len(buffers):
            raise InvalidArgumentError(f"out has {len(outs)} arrays for {len(buffers)} inputs: give one for each.")
        self._outputs = [
            Output(out, buffer.shape, buffer.dtype if op is None else as_result(buffer.dtype, op))
            for out, buffer in zip(outs, buffers, strict=True)
        ]
        self.direct: list[Array] = [output.direct for output in self._outputs]
        buffers[:] = [apart_from(out, buffer) for out, buffer in zip(self.direct, buffers, strict=True)]

    def store(self) -> list[Any]:
        """Bring the results to where the caller wants them, and return the caller's arrays."""
        return [output.store() for output in self._outputs]


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


def read_first(out: Array | None, buffer: Array) -> Array:
    """Give `buffer`, or a copy if it shares any memory with `out`.

    Examples
    --------
    >>> x = np.arange(4)
    >>> read_first(x, x) is x, read_first(None, x) is x
    (False, True)
    """
    return buffer.copy() if out is not None and np.may_share_memory(out, buffer) else buffer


def is_view_of(array: Array, value: Any) -> bool:
    """Tell whether an array is the memory of a value, and not a copy that :func:`as_ndarray` makes each time anew.

    Examples
    --------
    >>> x = np.arange(4)
    >>> is_view_of(x, x), is_view_of(x, [0, 1, 2, 3])
    (True, False)
    """
    return not array.size or np.may_share_memory(array, as_ndarray(value))


def _writeable(out: Any) -> Array:
    """The memory of an output, as an array."""
    kind = kind_of(out)
    if kind is not None and kind.is_mutable:
        array = kind.as_ndarray(out, "out")
        if not is_view_of(array, out):
            raise InvalidArgumentError(
                "out is a view that shows other values than its memory holds: give its .clone()."
            )
        if any(size > 1 and not stride for size, stride in zip(array.shape, array.strides, strict=True)):
            raise InvalidArgumentError("out is an expanded view, of which many elements are one: give its .clone().")
        return array
    if not isinstance(out, np.ndarray):
        what = f"a {type(out).__name__}" if kind is None else f"a {kind.name}, which cannot be written to"
        raise InvalidArgumentError(f"out is {what}: expected a writeable ndarray.")
    return out


def _check_output(out: Array, shape: tuple[int | None, ...] | None, dtype: np.dtype[Any] | None) -> None:
    fits = shape is None or (
        out.ndim == len(shape) and all(size in (None, given) for size, given in zip(shape, out.shape, strict=True))
    )
    if not fits or (dtype is not None and native(out.dtype) != dtype):
        _refuse_output(out, out.shape if shape is None else shape, native(out.dtype) if dtype is None else dtype)
    if not is_known(native(out.dtype)):
        refuse_dtype(out, out.dtype, "out")
    if not out.flags.writeable:
        raise InvalidArgumentError("out is read-only: give an array that may be written, for example out.copy().")


def _refuse_output(out: Array, shape: tuple[int | None, ...], dtype: np.dtype[Any]) -> None:
    sizes = ", ".join("?" if size is None else str(size) for size in shape)
    remedy = "where ? is what the ranks give together"
    if None not in shape:
        remedy = f"Make one with np.empty({shape}, {dtype.name!r})"
    raise InvalidArgumentError(f"out is {out.dtype}{list(out.shape)}: the result is {dtype}[{sizes}]. {remedy}.")
