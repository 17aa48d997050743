"""Call codec: pickling of calls and results between `ringlet.launch` and its workers.

Pickles pass only through descriptors shared by this process and its children, never through named files or the
environment.
"""

from __future__ import annotations

import io
import os
import pickle
import struct
import types
from collections.abc import Callable
from typing import Any

from ringlet.errors.documented_names import shown_as
from ringlet.ipc.pickle_diagnostics import culprit, named

__all__ = [
    "PROTOCOL",
    "ParcelReader",
    "Unsendable",
    "culprit_of",
    "dumps",
    "pack_call",
    "pack_result",
    "pickler_class",
    "refusal",
    "send",
    "unpack",
]

PROTOCOL = 5
# A parcel: size of the pickle, number of buffers; size and writeability of each buffer; the pickle; the buffers.
_HEAD = struct.Struct("<QQ")
_BUFFER = struct.Struct("<Q?")


@shown_as(TypeError)
class Unsendable(TypeError):
    """An object cannot be sent between processes; the message names it and the remedy."""


class _PlainPickler(pickle.Pickler):
    """Rejects functions and classes of ``__main__``, which a worker cannot import."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (types.FunctionType, type)) and value.__module__ == "__main__":
            raise pickle.PicklingError(f"{named(value)} is defined in __main__, which workers do not have")
        return NotImplemented


def pack_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Pickle a call, with cloudpickle if that is installed.

    Parameters
    ----------
    function : callable
    args : tuple
    kwargs : dict

    Returns
    -------
    bytes

    Raises
    ------
    Unsendable
        If something in it cannot be pickled; names the object, and the extra to install.
    """
    call = (function, args, kwargs)
    try:
        return dumps(call)
    except Exception as error:
        raise refusal(f"{_culprit(call)} to workers", error) from error


def refusal(what: str, error: Exception) -> Unsendable:
    """Return the error for something that cannot be pickled, with reason and remedy."""
    remedy = "Create it inside the function"
    if _cloudpickle() is None:
        remedy = "Install cloudpickle (pip install 'ringlet[cluster]'), or define it at the top level of a module"
    return Unsendable(f"cannot send {what}: {_one_line(error)}. {remedy}")


def culprit_of(value: object, can_be_sent: Callable[[Any], bool]) -> str:
    """Return the name of the part of `value` that cannot be pickled, for the pickler of :func:`pickler_class`."""
    return culprit(value, can_be_sent, sends_code=_cloudpickle() is not None)


def dumps(value: object) -> bytes:
    """Pickle an object into one bytes object, with cloudpickle if that is installed."""
    into = io.BytesIO()
    pickler_class()(into, protocol=PROTOCOL).dump(value)
    return into.getvalue()


def pickler_class() -> type[pickle.Pickler]:
    """Return cloudpickle's pickler if that is installed, else one that rejects code of ``__main__``."""
    cloudpickle = _cloudpickle()
    return _PlainPickler if cloudpickle is None else cloudpickle.Pickler


def pack_result(has_returned: bool, value: Any) -> list[Any]:
    """Pickle a worker's result without copying the memory of arrays.

    Parameters
    ----------
    has_returned : bool
        Whether `value` is the function's return value rather than its failure.
    value : object

    Returns
    -------
    list of buffers
        A parcel with the pair, to be written in order.

    Raises
    ------
    Unsendable
        If it cannot be pickled.
    """
    buffers: list[pickle.PickleBuffer] = []
    dumps = (_cloudpickle() or pickle).dumps
    try:
        pickled = dumps((has_returned, value), protocol=PROTOCOL, buffer_callback=buffers.append)
    except Exception as error:
        raise Unsendable(
            f"cannot send the result ({named(value)}) back: {_one_line(error)}. Return a value that can be pickled"
        ) from error
    raw = [buffer.raw() for buffer in buffers]
    sizes = b"".join(_BUFFER.pack(view.nbytes, not view.readonly) for view in raw)
    return [_HEAD.pack(len(pickled), len(raw)) + sizes + pickled, *raw]


def send(descriptor: int, parcel: list[Any]) -> None:
    """Write a parcel to a pipe; blocks until all of it is written."""
    for part in parcel:
        view = memoryview(part).cast("B")
        while view:
            view = view[os.write(descriptor, view[: 1 << 24]) :]


def unpack(pickled: bytes) -> Any:
    """Unpickle a call in a worker."""
    return pickle.loads(pickled)


class ParcelReader:
    """Reads one parcel from a pipe incrementally, directly into the memory of its arrays.

    Examples
    --------
    >>> reader, writer = os.pipe()
    >>> send(writer, pack_result(True, {"weights": 3}))
    >>> parcel = ParcelReader()
    >>> while not parcel.is_complete:
    ...     _ = parcel.read(reader)
    >>> parcel.value()
    (True, {'weights': 3})
    >>> os.close(reader)
    >>> os.close(writer)
    """

    def __init__(self) -> None:
        self._parts = [_new_buffer(_HEAD.size)]
        self._steps: list[Callable[[], None]] = [self._read_head]
        self._part = 0
        self._rest = self._parts[0]
        self._is_writeable: list[bool] = []
        self.is_complete = False

    def read(self, descriptor: int) -> bool:
        """Read once; return False at the end of the stream."""
        count = os.readv(descriptor, [self._rest])
        self._rest = self._rest[count:]
        while not self._rest and not self.is_complete:
            self._next_part()
        return count > 0

    def value(self) -> Any:
        """Unpickle the complete parcel. Its arrays use the receive buffers."""
        pickled, *buffers = self._parts[2:]
        kept = zip(buffers, self._is_writeable, strict=True)
        return pickle.loads(
            pickled, buffers=[buffer if is_writeable else buffer.toreadonly() for buffer, is_writeable in kept]
        )

    def _next_part(self) -> None:
        if self._steps:
            self._steps.pop(0)()
        self._part += 1
        if self._part == len(self._parts):
            self.is_complete = True
        else:
            self._rest = self._parts[self._part]

    def _read_head(self) -> None:
        self._pickle_bytes, count = _HEAD.unpack(self._parts[0])
        self._parts.append(_new_buffer(count * _BUFFER.size))
        self._steps.append(self._read_sizes)

    def _read_sizes(self) -> None:
        sizes = list(_BUFFER.iter_unpack(self._parts[1]))
        self._is_writeable = [is_writeable for _, is_writeable in sizes]
        self._parts += [_new_buffer(size) for size in (self._pickle_bytes, *(size for size, _ in sizes))]


def _new_buffer(size: int) -> memoryview:
    # A bytearray would be zero-filled first. Imported here: only the parent reads parcels, and workers start faster
    # without NumPy.
    import numpy as np

    return np.empty(size, np.uint8).data


def _cloudpickle() -> Any:
    try:
        import cloudpickle  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return None
    return cloudpickle


def _culprit(call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]) -> str:
    """Return the name of the part of a call that cannot be pickled."""
    function, args, kwargs = call
    names = [*((f"args[{i}]", value) for i, value in enumerate(args)), *((f"{k}=", v) for k, v in kwargs.items())]
    for name, value in names:
        if not _can_be_sent(value):
            inner = culprit_of(value, _can_be_sent)
            return f"{name} ({named(value)})" if inner == named(value) else f"{inner}, in {name}"
    return culprit_of(function, _can_be_sent)


def _can_be_sent(value: object) -> bool:
    try:
        dumps(value)
    except Exception:
        return False
    return True


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__
