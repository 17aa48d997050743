"""What a sharded array becomes elsewhere: a plain array, a number, text, memory that others read."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ringlet.values.operand import converted

if TYPE_CHECKING:
    from ringlet.sharding.device_group import DeviceGroup
    from ringlet.sharding.layout import Layout
    from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["Conversions"]

Array = NDArray[Any]


class Conversions:
    """Conversions of a :class:`~ringlet.sharding.ShardedArray`.

    All of them collect the values, if devices have different ones. Only those that a program may not have meant are
    refused by :func:`ringlet.sharding.strict`: ``np.asarray`` and what calls it.
    """

    __slots__ = ()

    def numpy(self: Any) -> Any:
        """Give the values as a plain array of its own, or a NumPy number, also in :func:`ringlet.sharding.strict`."""
        from ringlet.sharding.gathers import gathering, strict

        x = self._known()
        if not x._is_everywhere():
            with strict(False):
                gathering("numpy", x, is_asked_for=True)
        return np.array(x._gathered())[()]

    def _known(self: Any) -> Any:
        """The array once its parts are combined."""
        from ringlet.sharding.movement import settled

        return settled(self)

    def _is_everywhere(self: Any) -> bool:
        """Whether nothing has to be collected, or only a number."""
        return bool(self._layout.is_replicated or not self.shape)

    def _gathered(self: Any) -> Array:
        """Give the values as a plain read-only array; a view where they are in one place. Whoever asks counts."""
        from ringlet.sharding.explain import unnoted
        from ringlet.sharding.layout import Layout
        from ringlet.sharding.movement import redistribute

        x = self._known()
        if x._group.member is not None:
            with unnoted():
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
        from ringlet.sharding.gathers import gathering

        x = self._known()
        if copy is False and not x._is_in_one_place():
            raise ValueError(
                f"an array that is laid out as {x.sharding} cannot become a plain one without a copy: leave out "
                "copy=False, or look at array.shards"
            )
        if not x._is_everywhere():
            gathering("np.asarray", x, is_asked_for=True)
        return converted(x._gathered(), dtype, copy is not False)

    def _is_in_one_place(self: Any) -> bool:
        """Whether some device has all of the array."""
        return bool(self._layout.is_replicated or len(self._layout.holders) == 1)

    # Consumers of DLPack share memory, so there has to be one place that has all values.

    def __dlpack__(self: Any, **kwargs: Any) -> Any:
        return self._shared_memory().__dlpack__(**kwargs)

    def __dlpack_device__(self: Any) -> tuple[int, int]:
        return 1, 0  # DLPack's number of host memory

    def _shared_memory(self: Any) -> Array:
        x = self._known()
        shards: list[Array] = x.shards if x._is_in_one_place() else []
        if not shards:
            raise BufferError(
                f"an array that is laid out as {x.sharding} is not in one piece of memory: hand over its tiles, "
                "array.shards, one by one, or np.asarray(array)"
            )
        return shards[0]

    # Numbers

    def item(self: Any, *index: Any) -> Any:
        """Give one element as a Python number; parameters are those of ndarray's method."""
        return self._gathered().item(*index)

    def tolist(self: Any) -> Any:
        """Give all elements as nested lists of Python numbers."""
        return self._gathered().tolist()

    def tobytes(self: Any, order: Any = "C") -> bytes:
        """Give the bytes of all elements."""
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
        if self.shape:
            return np.round(self, digits or 0)
        return round(self.item(), digits)

    def _number(self: Any) -> Any:
        """An ndarray that converts to a number, or says why not, without a large one being collected for that."""
        return self._gathered() if self.size == 1 else np.broadcast_to(np.zeros((), self.dtype), self.shape)

    def __len__(self: Any) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    # Text

    def __format__(self: Any, specification: str) -> str:
        return format(self._gathered(), specification) if specification else str(self)

    def __repr__(self: Any) -> str:
        if self._group.member is not None:  # that others have a part in showing it would be a surprise
            return f"ShardedArray(shape={self.shape}, dtype={self.dtype}, sharding={self.sharding})"
        return f"ShardedArray({self._gathered()!r}, sharding={self.sharding})"

    def __str__(self: Any) -> str:
        return repr(self) if self._group.member is not None else str(self._gathered())

    # Copies

    def __copy__(self: Any) -> Any:
        return self.copy()

    def __deepcopy__(self: Any, _: dict[int, Any]) -> Any:
        return self.copy()

    def __reduce__(self: Any) -> Any:
        if self._group.member is not None:
            raise TypeError(
                "an array that lies on devices of several processes is not pickled: send np.asarray(array), and lay "
                "it out again with ringlet.sharding.shard"
            )
        x = self._known()
        return _unpickled, (np.array(x._gathered()), x._layout, x._group)


def _unpickled(values: Array, layout: Layout, group: DeviceGroup) -> ShardedArray:
    from ringlet.sharding.creation import place

    return place(values, layout, group)
