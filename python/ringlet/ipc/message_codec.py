"""Message codec: values as messages, with arrays as raw buffers and all other objects pickled."""

from __future__ import annotations

import functools
import io
import pickle
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ringlet.ipc.call_codec import PROTOCOL, Unsendable, culprit_of, pickler_class, refusal

__all__ = ["Unsendable", "pack", "unpack"]

# Before the pickle: number of array buffers, number of out-of-band pickle buffers after them; then the writeability of
# each of the latter.
_HEAD = struct.Struct("<II")

# Classes whose objects are never passed to `refer`: the call would cost more than pickling them.
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, tuple, list, dict, type, type(len), type(_HEAD)})

_ARRAY, _REFERENCE = 0, 1
_NOTHING = np.empty(0, np.uint8)


def pack(value: Any, refer: Callable[[Any], Any] | None = None) -> tuple[bytes, list[Any]]:
    """Encode a value as a message.

    Parameters
    ----------
    value : object
        Usually a nest. Arrays anywhere in it, also in objects and in the closures of functions, become buffers.
    refer : callable, optional
        Called with each object that is not of a builtin type: returns a token to send in place of the object, or None
        to pickle the object.

    Returns
    -------
    tuple
        The header, and the buffers: the memory of arrays, not copied if contiguous; it must not change until it is
        sent.

    Raises
    ------
    Unsendable
        If something in it cannot be pickled; names the object.

    Examples
    --------
    >>> header, buffers = pack({"weights": np.arange(3), "name": "layer"})
    >>> [bytes(buffer) for buffer in buffers] == [np.arange(3).tobytes()]
    True
    >>> unpack(header, buffers)
    {'weights': array([0, 1, 2]), 'name': 'layer'}
    """
    try:
        return _pack(value, refer)
    except Unsendable:
        raise
    except Exception as error:
        raise refusal(culprit_of(value, functools.partial(_can_be_packed, refer)), error) from error


def unpack(header: bytes, buffers: Sequence[Any], resolve: Callable[[Any], Any] | None = None) -> Any:
    """Decode a message of an authenticated peer: unpickling may run any code.

    Parameters
    ----------
    header : bytes
    buffers : sequence of buffers
        Become the memory of the value's arrays.
    resolve : callable, optional
        Maps a token of `refer` of :func:`pack` to its object.

    Returns
    -------
    object
    """
    num_arrays, num_others = _HEAD.unpack_from(header)
    start = _HEAD.size + num_others
    others = [
        memoryview(buffer) if is_writeable else memoryview(buffer).toreadonly()
        for buffer, is_writeable in zip(buffers[num_arrays:], header[_HEAD.size : start], strict=True)
    ]
    return _Unpacker(io.BytesIO(memoryview(header)[start:]), buffers[:num_arrays], others, resolve).load()


def _pack(value: Any, refer: Callable[[Any], Any] | None) -> tuple[bytes, list[Any]]:
    into = io.BytesIO()
    base: Any = pickler_class()
    packer = _packer_class(base)(into, refer)
    packer.dump(value)
    others = [buffer.raw() for buffer in packer.others]
    head = _HEAD.pack(len(packer.arrays), len(others)) + bytes(not view.readonly for view in others)
    return head + into.getvalue(), [*packer.arrays, *others]


def _can_be_packed(refer: Callable[[Any], Any] | None, value: object) -> bool:
    try:
        _pack(value, refer)
    except Exception:
        return False
    return True


@functools.lru_cache
def _packer_class(base: Any) -> Any:
    class Packer(base):  # type: ignore[misc]  # one of two classes, by what is installed
        """Replaces arrays and referred objects by tokens."""

        def __init__(self, into: io.BytesIO, refer: Callable[[Any], Any] | None) -> None:
            self.arrays: list[npt.NDArray[np.uint8]] = []
            self.others: list[pickle.PickleBuffer] = []
            self._refer = refer
            # Each array is sent once, however often it occurs; kept alive, so that its id is not reused.
            self._known: dict[int, tuple[Any, Any]] = {}
            super().__init__(into, protocol=PROTOCOL, buffer_callback=self.others.append)

        def persistent_id(self, value: Any) -> Any:
            kind = type(value)
            if kind in _PLAIN:
                return None
            if kind is np.ndarray and not value.dtype.hasobject:
                if id(value) not in self._known:
                    self._known[id(value)] = (value, self._token_of(value))
                return self._known[id(value)][1]
            token = None if self._refer is None else self._refer(value)
            return None if token is None else (_REFERENCE, token)

        def _token_of(self, array: npt.NDArray[Any]) -> Any:
            is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
            self.arrays.append(_bytes_of(array.T if is_fortran else array))
            # Kind "V" may be another library's type or have fields, which its string omits.
            dtype = array.dtype if array.dtype.kind == "V" else array.dtype.str
            return _ARRAY, len(self.arrays) - 1, dtype, array.shape, is_fortran, array.flags.writeable

    return Packer


class _Unpacker(pickle.Unpickler):
    def __init__(
        self, file: io.BytesIO, arrays: Sequence[Any], others: Sequence[Any], resolve: Callable[[Any], Any] | None
    ) -> None:
        super().__init__(file, buffers=others)
        self._arrays = arrays
        self._resolve = resolve
        self._made: dict[int, npt.NDArray[Any]] = {}

    def persistent_load(self, token: Any) -> Any:
        if token[0] == _REFERENCE:
            if self._resolve is None:
                raise pickle.UnpicklingError("the message contains a reference, but no resolve= was given to unpack()")
            return self._resolve(token[1])
        index = token[1]
        if index not in self._made:
            self._made[index] = _array_of(self._arrays[index], *token[2:])
        return self._made[index]


def _bytes_of(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    # Not a memoryview: the buffer protocol supports neither bfloat16 nor dates.
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.nbytes else _NOTHING


def _array_of(buffer: Any, dtype: Any, shape: tuple[int, ...], is_fortran: bool, is_writeable: bool) -> Any:
    array = np.frombuffer(buffer, np.uint8).view(dtype) if len(buffer) else np.empty(shape, dtype)
    array = array.reshape(shape[::-1]).T if is_fortran else array.reshape(shape)
    if not is_writeable:
        array.flags.writeable = False
    return array
