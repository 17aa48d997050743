"""Pickle codec: values, calls and results as bytes, with the memory of arrays out of band (protocol 5).

Pickles pass only through descriptors shared by this process and its children, and to authenticated peers, never through
named files or the environment: unpickling may run arbitrary code.
"""

from __future__ import annotations

import functools
import io
import os
import pickle
import struct
import sys
import types
from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import Any

from ringlet.errors.documented_names import shown_as
from ringlet.errors.notebook_cells import cell_or_file
from ringlet.ipc.pickle_diagnostics import culprit, named

_PROTOCOL = 5
# The header begins with the numbers of array buffers and of other out-of-band buffers, then one byte for each of the
# other buffers, which is 1 if the buffer is writable; the pickle follows. The other buffers are sent after the arrays.
_HEAD = struct.Struct("<II")
# Layout of a parcel: size of the header, number of buffers; size of each buffer; the header; the buffers.
_PARCEL = struct.Struct("<QQ")
_SIZE = struct.Struct("<Q")

# Classes whose objects are never passed to `refer`: the call would cost more than pickling them.
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, tuple, list, dict, type, type(len), type(_HEAD)})

_ARRAY, _REFERENCE = 0, 1


@shown_as(TypeError)
class Unsendable(TypeError):
    """An object cannot be sent between processes; the message names the object and the remedy."""


# --- values -----------------------------------------------------------------------------------------------------------


def pack(value: Any, refer: Callable[[Any], Any] | None = None) -> tuple[bytes, list[Any]]:
    """Encode a value as a header and the buffers of its arrays.

    Arrays anywhere in the value, also in objects and in closures of functions, become buffers, without a copy if
    contiguous; they must not change until they are sent. Arrays of objects and of subclasses are pickled. `refer` is
    called with other objects, except those of common builtin types: it returns a token to send in place of the object,
    or None to pickle it.
    """
    try:
        return _pack(value, refer)
    except Unsendable:
        raise
    except Exception as error:
        what = culprit(value, lambda part: _succeeds(_pack, part, refer), sends_code=_cloudpickle() is not None)
        raise _refusal(what, error) from error


def unpack(header: Any, buffers: Sequence[Any], resolve: Callable[[Any], Any] | None = None) -> Any:
    """Decode a message, which must be from an authenticated peer: unpickling may run arbitrary code.

    The buffers become the memory of the arrays. `resolve` takes a token from `refer` of :func:`pack` and returns the
    object.
    """
    num_arrays, num_others = _HEAD.unpack_from(header)
    start = _HEAD.size + num_others
    others = [
        memoryview(buffer) if is_writeable else memoryview(buffer).toreadonly()
        for buffer, is_writeable in zip(buffers[num_arrays:], header[_HEAD.size : start], strict=True)
    ]
    return _Unpacker(io.BytesIO(memoryview(header)[start:]), buffers[:num_arrays], others, resolve).load()


def _pack(value: Any, refer: Callable[[Any], Any] | None = None) -> tuple[bytes, list[Any]]:
    into = io.BytesIO()
    packer = _packer_class(_pickler_class())(into, refer)
    packer.dump(value)
    others = [buffer.raw() for buffer in packer.others]
    head = _HEAD.pack(len(packer.arrays), len(others)) + bytes(not view.readonly for view in others)
    return head + into.getvalue(), [*packer.arrays, *others]


@functools.lru_cache
def _packer_class(base: Any) -> Any:
    class Packer(base):  # type: ignore[misc]  # depends on whether cloudpickle is installed
        """Pickler that writes persistent ids for arrays and for objects for which `refer` returns a token."""

        def __init__(self, into: io.BytesIO, refer: Callable[[Any], Any] | None) -> None:
            self.arrays: list[Any] = []
            self.others: list[pickle.PickleBuffer] = []
            self._refer = refer
            # NumPy is not imported here: workers start faster without it, and no arrays exist before it is imported.
            self._array_type = getattr(sys.modules.get("numpy"), "ndarray", None)
            # Arrays that were sent, by id. Each array is sent once, and kept alive so that its id is not reused.
            self._known: dict[int, tuple[Any, Any]] = {}
            super().__init__(into, protocol=_PROTOCOL, buffer_callback=self.others.append)

        def persistent_id(self, value: Any) -> Any:
            kind = type(value)
            if kind in _PLAIN:
                return None
            if kind is self._array_type and not value.dtype.hasobject:
                if id(value) not in self._known:
                    self._known[id(value)] = (value, self._token_of(value))
                return self._known[id(value)][1]
            token = None if self._refer is None else self._refer(value)
            return None if token is None else (_REFERENCE, token)

        def _token_of(self, array: Any) -> Any:
            is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
            self.arrays.append(_bytes_of(array.T if is_fortran else array))
            # A dtype of kind "V" may have fields or belong to another library; dtype.str omits both.
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
        self._made: dict[int, Any] = {}

    def persistent_load(self, token: Any) -> Any:
        if token[0] == _REFERENCE:
            if self._resolve is None:
                raise pickle.UnpicklingError("the message contains a reference, but no resolve= was given to unpack()")
            return self._resolve(token[1])
        index = token[1]
        if index not in self._made:
            self._made[index] = _array_of(self._arrays[index], *token[2:])
        return self._made[index]


def _bytes_of(array: Any) -> Any:
    import numpy as np

    # Not a memoryview: the buffer protocol supports neither bfloat16 nor datetime64.
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.nbytes else np.empty(0, np.uint8)


def _array_of(buffer: Any, dtype: Any, shape: tuple[int, ...], is_fortran: bool, is_writeable: bool) -> Any:
    import numpy as np

    array = np.frombuffer(buffer, np.uint8).view(dtype) if len(buffer) else np.empty(shape, dtype)
    array = array.reshape(shape[::-1]).T if is_fortran else array.reshape(shape)
    if not is_writeable:
        array.flags.writeable = False
    return array


# --- calls and results ------------------------------------------------------------------------------------------------


def pack_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Pickle a call; raise Unsendable with the name of the part that cannot be pickled."""
    call = (function, args, kwargs)
    try:
        return dumps(call)
    except Exception as error:
        raise _refusal(f"{_culprit(call)} to workers", error) from error


def pack_result(has_returned: bool, value: Any) -> list[Any]:
    """Pickle a worker's result or failure without copying contiguous arrays; return the buffers to write in order."""
    try:
        header, buffers = _pack((has_returned, value))
    except Exception as error:
        raise Unsendable(
            f"cannot send the result ({named(value)}) back: {_one_line(error)}. Return a value that can be pickled"
        ) from error
    sizes = b"".join(_SIZE.pack(memoryview(buffer).nbytes) for buffer in buffers)
    return [_PARCEL.pack(len(header), len(buffers)) + sizes + header, *buffers]


def send(descriptor: int, parcel: list[Any]) -> None:
    """Write the result of :func:`pack_result` to a pipe; block until all of it is written."""
    for part in parcel:
        view = memoryview(part).cast("B")
        while view:
            view = view[os.write(descriptor, view[: 1 << 24]) :]


class ParcelReader:
    """Incremental reader of one result of :func:`pack_result` from a pipe, directly into the memory of its arrays."""

    def __init__(self) -> None:
        self._parts = [_new_buffer(_PARCEL.size)]
        self._steps: list[Callable[[], None]] = [self._read_head]
        self._part = 0
        self._rest = self._parts[0]
        self.is_complete = False

    def read(self, descriptor: int) -> bool:
        """Read once; return False at the end of the stream."""
        count = os.readv(descriptor, [self._rest])
        self._rest = self._rest[count:]
        while not self._rest and not self.is_complete:
            self._next_part()
        return count > 0

    def value(self) -> Any:
        """Decode the complete result. Its arrays use the receive buffers."""
        header, *buffers = self._parts[2:]
        return unpack(header, buffers)

    def _next_part(self) -> None:
        if self._steps:
            self._steps.pop(0)()
        self._part += 1
        if self._part == len(self._parts):
            self.is_complete = True
        else:
            self._rest = self._parts[self._part]

    def _read_head(self) -> None:
        self._header_bytes, count = _PARCEL.unpack(self._parts[0])
        self._parts.append(_new_buffer(count * _SIZE.size))
        self._steps.append(self._read_sizes)

    def _read_sizes(self) -> None:
        sizes = [size for (size,) in _SIZE.iter_unpack(self._parts[1])]
        self._parts += [_new_buffer(size) for size in (self._header_bytes, *sizes)]


def _new_buffer(size: int) -> memoryview:
    # Not a bytearray, which would be zero-filled. NumPy is imported here because only the parent reads parcels.
    import numpy as np

    return np.empty(size, np.uint8).data


# --- picklers and errors ----------------------------------------------------------------------------------------------


class _PlainPickler(pickle.Pickler):
    """Pickler that rejects functions and classes of ``__main__``, which workers cannot import."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (types.FunctionType, type)) and value.__module__ == "__main__":
            raise pickle.PicklingError(f"{named(value)} is defined in __main__, which workers cannot import")
        return NotImplemented


def _pickler_class() -> Any:
    cloudpickle = _cloudpickle()
    return _PlainPickler if cloudpickle is None else _located(cloudpickle.Pickler)


@functools.lru_cache
def _located(base: Any) -> Any:
    """Return a subclass of cloudpickle's pickler that keeps the file names of code, which tracebacks show."""

    def reduce_code(code: types.CodeType) -> tuple[Any, ...]:
        make, parts = base.dispatch_table[types.CodeType](code)
        file = cell_or_file(code.co_filename)
        return make, tuple(file if type(part) is str and part == "<dynamic-code>" else part for part in parts)

    return type("Pickler", (base,), {"dispatch_table": ChainMap({types.CodeType: reduce_code}, base.dispatch_table)})


def _cloudpickle() -> Any:
    try:
        import cloudpickle  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return None
    return cloudpickle


def dumps(value: object) -> bytes:
    """Pickle an object into one bytes object, with cloudpickle if it is installed."""
    into = io.BytesIO()
    _pickler_class()(into, protocol=_PROTOCOL).dump(value)
    return into.getvalue()


def _refusal(what: str, error: Exception) -> Unsendable:
    remedy = "Create it inside the function"
    if _cloudpickle() is None:
        remedy = "Install cloudpickle (pip install 'ringlet[cluster]'), or define it at the top level of a module"
    return Unsendable(f"cannot send {what}: {_one_line(error)}. {remedy}")


def _culprit(call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]) -> str:
    function, args, kwargs = call
    find = functools.partial(culprit, can_be_sent=_can_be_sent, sends_code=_cloudpickle() is not None)
    names = [*((f"args[{i}]", value) for i, value in enumerate(args)), *((f"{k}=", v) for k, v in kwargs.items())]
    for name, value in names:
        if not _can_be_sent(value):
            inner = find(value)
            return f"{name} ({named(value)})" if inner == named(value) else f"{inner}, in {name}"
    return find(function)


def _can_be_sent(value: object) -> bool:
    return _succeeds(dumps, value)


def _succeeds(function: Callable[..., Any], *args: Any) -> bool:
    try:
        function(*args)
    except Exception:
        return False
    return True


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
