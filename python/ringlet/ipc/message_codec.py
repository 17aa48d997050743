"""Values as messages: arrays as raw bytes, everything else through pickle."""

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

# Before the pickle: how many buffers are arrays, and how many follow that the pickle made of other objects; then of
# each of these whether it may be written to.
_HEAD = struct.Struct("<II")

# Classes of which no object is ever referred to: asking for each would cost more than pickling it.
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, tuple, list, dict, type, type(len), type(_HEAD)})

_ARRAY, _REFERENCE = 0, 1
_NOTHING = np.empty(0, np.uint8)


def pack(value: Any, refer: Callable[[Any], Any] | None = None) -> tuple[bytes, list[Any]]:
    """Make a message of any value.

    Parameters
    ----------
    value : object
        Usually a nest. Arrays anywhere in it, also in objects and in the closures of functions, become buffers.
    refer : callable, optional
        Is asked for each object that is none of Python's plain ones: gives what travels in its place, or None if the
        object itself shall.

    Returns
    -------
    tuple
        The header, and the buffers: the memory of arrays, not copied if it is contiguous. It must not change before it
        is sent.

    Raises
    ------
    Unsendable
        If something in it cannot be pickled; names it.

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
    """Make the value again. Only for messages of peers that were authenticated: a pickle may run any program.

    Parameters
    ----------
    header : bytes
    buffers : sequence of buffers
        In which the arrays of the value live from now on.
    resolve : callable, optional
        Takes what `refer` of :func:`pack` gave, and gives the object that it stands for.

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
        """Sets arrays, and what others refer to, apart."""

        def __init__(self, into: io.BytesIO, refer: Callable[[Any], Any] | None) -> None:
            self.arrays: list[npt.NDArray[np.uint8]] = []
            self.others: list[pickle.PickleBuffer] = []
            self._refer = refer
            # An array is sent once, however often it occurs; it is kept, so that no other gets its id meanwhile.
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
            # Kind "V" may be a type of another library, or have fields: only the object tells.
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
                raise pickle.UnpicklingError("a reference came to where nobody knows what it stands for")
            return self._resolve(token[1])
        index = token[1]
        if index not in self._made:
            self._made[index] = _array_of(self._arrays[index], *token[2:])
        return self._made[index]


def _bytes_of(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    # Not a memoryview: the buffer protocol knows neither bfloat16 nor dates.
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.nbytes else _NOTHING


def _array_of(buffer: Any, dtype: Any, shape: tuple[int, ...], is_fortran: bool, is_writeable: bool) -> Any:
    array = np.frombuffer(buffer, np.uint8).view(dtype) if len(buffer) else np.empty(shape, dtype)
    array = array.reshape(shape[::-1]).T if is_fortran else array.reshape(shape)
    if not is_writeable:
        array.flags.writeable = False
    return array
