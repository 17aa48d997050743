"""Conversions of a sharded array to a plain array, a number, text or shared memory."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ringlet.sharding.layout.layout import Array
from ringlet.values.ndarray_protocol import converted

if TYPE_CHECKING:
    from ringlet.sharding.layout.device_group import DeviceGroup
    from ringlet.sharding.layout.layout import Layout
    from ringlet.sharding.sharded_array import ShardedArray

# Remedies for absent attributes: ndarray attributes that need one block of memory, and other libraries' attributes.
_ABSENT = {
    **dict.fromkeys(("addressable_data", "addressable_shards", "tiles", "to_local"), "Use array.shards, by device"),
    **dict.fromkeys(("block_until_ready", "compute"), "Omit it: a call returns when its values are computed"),
    **dict.fromkeys(("cpu", "full_tensor", "gather", "get", "to_numpy"), "Write array.numpy()"),
    **dict.fromkeys(("rechunk", "redistribute"), "Write array.reshard(sharding)"),
    "at": "Write array[index] = value, after array.copy() if the old values are needed",
    "base": "Use np.shares_memory(array, other)",
    "ctypes": "Use array.shards[0].ctypes, or np.asarray(array).ctypes",
    "__buffer__": "Use memoryview(array.shards[0]), or memoryview(np.asarray(array))",
    "data": "Use array.shards[0].data, or np.asarray(array).data",
    "dump": "Write pickle.dump(array, file), or np.save(file, array)",
    "dumps": "Write pickle.dumps(array)",
    "flags": "Use array.shards[0].flags; array.copy() is always writable",
    "getfield": "Write array[name] for a field, array.view(dtype) for other elements, or np.asarray(array).getfield",
    "resize": "Write np.resize(array, shape), which makes a new array",
    "setfield": "Write array[name] = value for a field",
    "setflags": "Write array.copy() for a writable array; slices are read-only",
    "strides": "Use array.shards[0].strides, or np.asarray(array).strides",
    "tostring": "Write array.tobytes()",  # removed in NumPy 2.3
}


# Arrays with more elements are abbreviated when printed.
_MOST_SHOWN = 24


class Conversions:
    """Conversions of a :class:`~ringlet.sharding.ShardedArray`.

    Conversions gather the values if they differ between devices. :func:`ringlet.sharding.strict` refuses only implicit
    conversions, such as ``np.asarray`` and functions that call it.
    """

    __slots__ = ()

    def numpy(self: Any) -> Any:
        """Return a plain writable array, or a NumPy number, even in :func:`ringlet.sharding.strict`."""
        from ringlet.sharding.execution.gather_fallback import record_gather, strict

        x = self._materialized()
        if not x._is_everywhere():
            with strict(False):
                record_gather("numpy", x, is_asked_for=True)
        return np.array(x._gathered())[()]

    def _materialized(self: Any) -> Any:
        if not self._layout.is_partial:  # fast path, without the import
            return self
        from ringlet.sharding.resharding.reshard import materialized

        return materialized(self)

    def _is_everywhere(self: Any) -> bool:
        """Return whether a conversion requires no gather, or only the gather of a single number."""
        return bool(self._layout.is_replicated or not self.shape)

    def _gathered(self: Any) -> Array:
        """Return a plain read-only array, a view if one buffer has all values, without recording the gather."""
        from ringlet.sharding.explain_operations import recording_suspended
        from ringlet.sharding.layout.layout import Layout
        from ringlet.sharding.resharding.reshard import redistribute

        x = self._materialized()
        if x._group.member is not None:
            with recording_suspended():
                x = redistribute(x, Layout.replicated(x._group.num_devices, x.ndim))
        layout, boxes = x._layout, x._layout.boxes(x.shape)
        values: Array
        if x._whole is not None:
            values = x._whole.view()
        elif x._is_in_one_place():
            values = x._tile(x._group.local_devices[0] if layout.only is None else layout.only).view()
        else:
            values = np.empty_like(x._tile(layout.holders[0]), shape=x.shape)
            for device in layout.first_holders(x.shape):
                values[boxes[device]] = x._tile(device)
        values.flags.writeable = False
        return values

    def __array__(self: Any, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        from ringlet.sharding.execution.gather_fallback import record_gather

        x = self._materialized()
        if copy is False and not x._is_in_one_place():
            raise ValueError(
                f"an array with sharding {x.sharding} cannot be converted to a plain array without a copy: omit "
                "copy=False, or read array.shards"
            )
        if not x._is_everywhere():
            record_gather("np.asarray", x, is_asked_for=True)
        return converted(x._gathered(), dtype, copy is not False)

    def _is_in_one_place(self: Any) -> bool:
        return bool(self._layout.is_replicated or len(self._layout.holders) == 1)

    # Consumers of DLPack share memory if one block has all values; otherwise they get a copy, if they accept copies.

    def __dlpack__(
        self: Any, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        from ringlet.sharding.execution.gather_fallback import record_gather

        given = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
        options = {name: value for name, value in given.items() if value is not None}
        if not copy:
            x = self._materialized()
            try:
                memory = x._shared_memory()
                if x is self and memory.flags.writeable:
                    self._writable_buffers()  # arrays that share this memory get a copy, as before an assignment
                    memory = self._shared_memory()
                memory.flags.writeable &= x is self  # other arrays may share the combined values of a partial array
                capsule = memory.__dlpack__(**options)
            except BufferError:  # the tiles are not in one block, or the consumer does not support read-only memory
                if copy is not None:
                    raise
            else:
                if not x._is_in_one_place():
                    record_gather("np.from_dlpack", x, is_asked_for=True)
                return capsule
        return np.array(self.numpy() if copy else np.asarray(self)).__dlpack__(**options)

    def __dlpack_device__(self: Any) -> tuple[int, int]:
        return 1, 0  # DLPack's code for host memory

    def _shared_memory(self: Any) -> Array:
        if self._whole is not None and self._group.member is None:
            memory: Array = self._whole.view()
            memory.flags.writeable &= not self._is_view
            return memory
        shards: list[Array] = self.shards if self._is_in_one_place() else []
        if not shards:
            raise BufferError(
                f"an array with sharding {self.sharding} is not in one block of memory: pass its tiles, array.shards, "
                "one by one, or omit copy=False"
            )
        return shards[0]

    def item(self: Any, *index: Any) -> Any:
        """Return one element as a Python object; parameters as for ``ndarray.item``."""
        return self._gathered().item(*index)

    def tolist(self: Any) -> Any:
        """Return all elements as Python objects, in nested lists unless the array is 0-d."""
        return self._gathered().tolist()

    def tofile(self: Any, fid: Any, sep: str = "", format: str = "%s") -> None:  # NumPy's parameter names
        """Write all elements to a file; parameters as for ``ndarray.tofile``."""
        self._gathered().tofile(fid, sep, format)

    def tobytes(self: Any, order: Any = "C") -> bytes:
        """Return the bytes of all elements."""
        return bytes(self._gathered().tobytes(order))

    def __bool__(self: Any) -> bool:
        return bool(self._number())

    def __int__(self: Any) -> int:
        return int(self._number())

    def __float__(self: Any) -> float:
        return float(self._number())

    def __complex__(self: Any) -> complex:
        return complex(self._number())

    def __index__(self: Any) -> int:
        return operator.index(self._number())

    def __round__(self: Any, digits: int | None = None) -> Any:
        return np.round(self, digits or 0) if self.shape else round(self.numpy(), digits)

    def _number(self: Any) -> Any:
        """Return the only element, as a scalar or an array, for conversion to a number.

        If the size is not 1, return an array of this shape, for which NumPy raises its error.
        """
        if self.size != 1:
            return np.broadcast_to(np.zeros((), self.dtype), self.shape)
        return self._gathered()[()] if self._is_number() else self._gathered()

    def __len__(self: Any) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    @property
    def device(self) -> str:
        """Name of the device in the array API: ``"cpu"``. For logical devices, see `sharding`."""
        return "cpu"

    def to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
        """Return the array itself if `device` is ``"cpu"``; if it is a sharding, return the array in that sharding."""
        if hasattr(device, "for_ndim") or hasattr(device, "tile_assignment_devices"):
            return self.reshard(device)
        np.empty(0).to_device(device, stream=stream)  # raises NumPy's error for other devices and for streams
        return self

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        from ringlet.sharding.array_namespace import namespace_of

        return namespace_of(self, api_version)

    def __getattr__(self, name: str) -> Any:
        remedy = _ABSENT.get(name)
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute {name!r}"
            + (f": its elements are stored in tiles. {remedy}" if remedy else ""),
            name=name,
            obj=self,
        )

    def __format__(self: Any, specification: str) -> str:
        return format(self._gathered(), specification) if specification else str(self)

    def __repr__(self: Any) -> str:
        if self._group.member is not None:  # printing the values would be a collective call
            return str(self._summary)
        return f"{self._summary}\n{np.array2string(self._gathered(), threshold=_MOST_SHOWN, edgeitems=2)}"

    def _repr_html_(self: Any) -> str:
        from ringlet.sharding.layout.axis_names import placement_text
        from ringlet.values.notebook_repr import facts_table

        facts = {"dtype": self.dtype, "shape": self.shape, "placement": placement_text(self._layout, self._group)}
        if self._group.member is None:
            facts["values"] = np.array2string(self._gathered(), threshold=6, precision=4, max_line_width=10**6)
        return facts_table(type(self).__name__, facts)

    @property
    def _summary(self: Any) -> str:
        from ringlet.sharding.layout.axis_names import array_text, placement_text

        combined = "" if self._combine.name == "SUM" else self._combine.name
        return array_text(self.dtype, self.shape, placement_text(self._layout, self._group, combined))

    def __str__(self: Any) -> str:
        return repr(self) if self._group.member is not None else str(self._gathered())

    def __copy__(self: Any) -> Any:
        return self.copy()

    def __deepcopy__(self: Any, _: dict[int, Any]) -> Any:
        return self.copy()

    def __reduce__(self: Any) -> Any:
        if self._group.member is not None:
            raise TypeError(
                "an array on devices of several processes cannot be pickled: pickle np.asarray(array), then shard the "
                "copy with ringlet.sharding.shard"
            )
        x = self._materialized()
        return _unpickled, (np.array(x._gathered()), x._layout, x._group)


def _unpickled(values: Array, layout: Layout, group: DeviceGroup) -> ShardedArray:
    from ringlet.sharding.creation import place

    return place(values, layout, group)
