"""Conversion of any array to an input or output buffer of the core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.argument_parsing import axis_in
from ringlet.collectives.collective_dtypes import as_result, is_known, native, refuse_dtype
from ringlet.collectives.op import Op
from ringlet.errors import InvalidArgumentError

Array = np.ndarray[Any, np.dtype[Any]]


# --- inputs -----------------------------------------------------------------------------------------------------------


def as_buffer(value: Any, name: str = "the array") -> Array:
    """Return an array that the core can read: contiguous, aligned and in native byte order.

    A suitable array is returned unchanged, others as a view if possible, else as a copy. Views of
    read-only inputs are read-only. Unsupported dtypes raise an error, as do masked arrays, whose mask would be lost.
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
    """Return :func:`as_buffer` of each value; messages name the position of an invalid value among several."""
    if len(values) == 1:
        return [as_buffer(values[0])]
    return [as_buffer(value, f"array {number} of {len(values)}") for number, value in enumerate(values)]


def as_ndarray(value: Any, name: str = "the array") -> Array:
    """Convert a value to an ndarray of any dtype and layout, without a copy if possible.

    Raises InvalidArgumentError for masked arrays, and for arrays that an adapter or DLPack cannot convert, such as
    tensors on other devices.
    """
    if type(value) is np.ndarray:
        return value
    kind = kind_of(value)
    if kind is not None:
        return kind.as_ndarray(value, name)
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidArgumentError(
            f"{name} is a masked array, whose mask would be lost. Combine x.filled(0) and the mask separately."
        )
    if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        try:
            return np.asarray(np.from_dlpack(value))
        except (BufferError, RuntimeError, TypeError) as error:
            raise InvalidArgumentError(
                f"{name} is a {type(value).__name__} that NumPy cannot read by DLPack: {error}. "
                "Pass an array in CPU memory, of a dtype that NumPy supports."
            ) from error
    return np.asarray(value)


# --- outputs ----------------------------------------------------------------------------------------------------------


def is_direct(out: Array) -> bool:
    """Return whether the core can write to an array directly."""
    return type(out) is np.ndarray and out.flags.c_contiguous and out.flags.aligned and native(out.dtype) is out.dtype


class Output:
    """A caller's output array, and the buffer that the core fills for it.

    A size of None in `shape`, or a `shape` of None, is not checked here. `direct` is `out` with `axis` moved
    to the front, as the core writes it, or a temporary buffer if the core cannot write to `out`.
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
        self._out = out = writeable_memory(out)
        _check_output(out, shape, dtype)
        self._target: Array = np.moveaxis(out, axis_in(out.ndim, axis), 0) if axis else out
        is_usable = is_direct(self._target)
        self.direct: Array = self._target if is_usable else np.empty(self._target.shape, native(out.dtype))

    @property
    def is_direct(self) -> bool:
        """Whether the core writes directly to the caller's array."""
        return self._target is self.direct

    def store(self) -> Any:
        """Copy the result to the caller's array if necessary, and return that array."""
        if not self.is_direct:
            self._target[...] = self.direct
        return self._written()

    def fill(self, result: Array) -> Any:
        """Copy `result` to the caller's array, and return that array."""
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
    """The outputs of a call whose results have the shapes of its inputs, and the same dtypes unless `op` changes them.

    An input in `buffers` that partly overlaps its own output is replaced by a copy.
    """

    def __init__(self, outs: Sequence[Any], buffers: list[Array], op: Op | None = None) -> None:
        if len(outs) != len(buffers):
            raise InvalidArgumentError(f"out has {len(outs)} arrays for {len(buffers)} inputs: pass one for each.")
        self._outputs = [
            Output(out, buffer.shape, buffer.dtype if op is None else as_result(buffer.dtype, op))
            for out, buffer in zip(outs, buffers, strict=True)
        ]
        self.direct: list[Array] = [output.direct for output in self._outputs]
        buffers[:] = [copy_if_partly_overlapping(out, buffer) for out, buffer in zip(self.direct, buffers, strict=True)]

    def store(self) -> list[Any]:
        """Copy the results to the caller's arrays if necessary, and return those arrays."""
        return [output.store() for output in self._outputs]


def copy_if_partly_overlapping(out: Array, buffer: Array) -> Array:
    """Return `buffer`, or a copy if `buffer` and `out` overlap but are not the same memory.

    An elementwise operation is safe in place, but not if `out` is shifted.
    """
    return buffer.copy() if overlaps_partly(out, buffer) else buffer


def overlaps_partly(out: Array, buffer: Array) -> bool:
    """Return whether two arrays may overlap, and are not the same memory."""
    if out is buffer or not np.may_share_memory(out, buffer):
        return False
    return out.ctypes.data != buffer.ctypes.data or out.nbytes != buffer.nbytes


def copy_if_overlapping(out: Array | None, buffer: Array) -> Array:
    """Return `buffer`, or a copy if it shares any memory with `out`."""
    return buffer.copy() if out is not None and np.may_share_memory(out, buffer) else buffer


def is_view_of(array: Array, value: Any) -> bool:
    """Return whether `array`, which :func:`as_ndarray` returned for `value`, is a view of `value`."""
    return not array.size or np.may_share_memory(array, as_ndarray(value))


def writeable_memory(out: Any) -> Array:
    """Return an output, or its memory if it is a mutable array of another library, as an ndarray; refuse others."""
    kind = kind_of(out)
    if kind is not None and kind.is_mutable:
        array = kind.as_ndarray(out, "out")
        if not is_view_of(array, out):
            raise InvalidArgumentError(
                "out is a conjugated or negated view, whose memory stores different values: pass out.clone()."
            )
        if any(size > 1 and not stride for size, stride in zip(array.shape, array.strides, strict=True)):
            raise InvalidArgumentError("out is an expanded view, whose elements share memory: pass out.clone().")
        return array
    if not isinstance(out, np.ndarray):
        what = f"a {type(out).__name__}" if kind is None else f"a {kind.name}, which is immutable"
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
        raise InvalidArgumentError("out is read-only: pass a writeable array, for example out.copy().")


def _refuse_output(out: Array, shape: tuple[int | None, ...], dtype: np.dtype[Any]) -> None:
    sizes = ", ".join("?" if size is None else str(size) for size in shape)
    remedy = "Pass an array of that size, where ? is the sum of the sizes on all ranks"
    if None not in shape:
        remedy = f"Pass out=np.empty({shape}, {dtype.name!r})"
    raise InvalidArgumentError(f"out is {out.dtype}{list(out.shape)}, expected {dtype}[{sizes}]. {remedy}.")
