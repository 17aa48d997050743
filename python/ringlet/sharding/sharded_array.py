"""ShardedArray: an array whose tiles lie on logical devices."""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ringlet.collectives import Op
from ringlet.collectives.adapters.array_adapters import register_kind
from ringlet.collectives.argument_parsing import shortened
from ringlet.errors import ShardingError
from ringlet.sharding.array_conversion import Conversions
from ringlet.sharding.array_methods import ArrayMethods
from ringlet.sharding.layout.axis_names import spec_of
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Array, Layout
from ringlet.sharding.layout.layout_of import sharding_of
from ringlet.sharding.layout.mesh import Mesh, NamedSharding
from ringlet.sharding.layout.partition_spec import PartitionSpec
from ringlet.sharding.layout.sharding import Sharding
from ringlet.sharding.sharded_adapter import ShardedKind


class Origin(NamedTuple):
    """The only partial operand of a linear operation, and the function that maps its values to the result's.

    `buffers` are the buffers of `source` at the time of the operation; a write replaces them and so ends the link.
    `depth` counts linear operations since the first partial array.
    """

    source: ShardedArray
    buffers: tuple[Array | None, ...] | None
    compute: Callable[[ShardedArray], ShardedArray]
    depth: int


class ShardedArray(ArrayMethods, Conversions):
    """An array divided over logical devices, on which most of NumPy's functions operate tile by tile.

    Created by :func:`ringlet.sharding.shard`, :meth:`ringlet.TPUStrategy.experimental_split_to_logical_devices` and
    similar functions. Their results are sharded arrays too, in the layout that sends the fewest bytes between devices.

    A slice or a transposed or reshaped array is a read-only value: later writes to its source do not change it.
    If `whole` is not copied, writes to it or to the sharded array are visible in both.

    Parameters
    ----------
    whole : ndarray
        Not copied if devices share memory, unless the array is unreduced.
    sharding : Sharding or NamedSharding
        Must match the number of dimensions of `whole`. The last tiles of a dimension are shorter or empty if its size
        is not a multiple of the number of tiles.

    Raises
    ------
    TypeError
        If `whole` is not an ndarray, or `sharding` not a sharding.
    ShardingError, PartitionError
        If `whole` cannot be divided by `sharding`.

    Examples
    --------
    >>> import numpy as np, ringlet
    >>> from ringlet.sharding import Sharding
    >>> x = ShardedArray(np.arange(8).reshape(2, 4), Sharding.tiled((1, 2)))
    >>> x.shards[1]
    array([[2, 3],
           [6, 7]])
    >>> y = np.maximum(x, 3) + 1
    >>> print(y.sharding)
    {devices=[1,2]<=[2]}
    >>> y.shards[1]
    array([[4, 4],
           [7, 8]])
    """

    __slots__ = (
        "__weakref__",
        "_buffers",
        "_combine",
        "_dtype",
        "_group",
        "_is_view",
        "_layout",
        "_origin",
        "_readers",
        "_root",
        "_settled",
        "_shape",
        "_whole",
    )

    _shape: tuple[int, ...]
    _dtype: np.dtype[Any]
    # `_whole` is the buffer that all devices share; if it is None, `_buffers` has one buffer for each device.
    _whole: Array | None
    _buffers: tuple[Array | None, ...] | None
    _layout: Layout
    _group: DeviceGroup
    _combine: Op
    # The array whose memory this array reads, and the arrays that read this array's memory. Weak references, so that a
    # partial source that only its views would keep alive is not counted as unreduced.
    _root: weakref.ref[ShardedArray] | None
    _readers: dict[int, weakref.ref[ShardedArray]]
    _is_view: bool
    # Combined values of a partial array, once computed.
    _settled: ShardedArray | None
    # Source of a partial array, if combining the source costs as much as combining the array.
    _origin: Origin | None

    def __init__(self, whole: Array, sharding: Sharding | NamedSharding) -> None:
        from ringlet.sharding.creation import shard

        for given, kinds in ((whole, (np.ndarray,)), (sharding, (Sharding, NamedSharding))):
            if not isinstance(given, kinds):
                raise TypeError(
                    f"ShardedArray requires an ndarray and a Sharding, got {shortened(given)} of type "
                    f"{type(given).__name__}: write ShardedArray(np.asarray(whole), Sharding.tiled((2, 1)))"
                )
        self._adopt(shard(whole, sharding))

    @classmethod
    def _of_whole(cls, whole: Array, layout: Layout, group: DeviceGroup) -> ShardedArray:
        """Build an array whose devices all have their box in one buffer; not for partial values."""
        made = cls.__new__(cls)
        made._shape, made._dtype = whole.shape, whole.dtype
        made._whole, made._buffers = whole, None
        made._layout, made._group, made._combine = layout, group, Op.SUM
        made._root = made._settled = made._origin = None
        made._readers = {}
        made._is_view = False
        return made

    @classmethod
    def _build(
        cls, buffers: Sequence[Array | None], layout: Layout, group: DeviceGroup, combine: Op = Op.SUM
    ) -> ShardedArray:
        """Build an array from one buffer for each device; None for devices of other processes."""
        known = next((buffer for buffer in buffers if buffer is not None), None)
        if known is None:
            raise ShardingError(
                f"this process does not own any of the {group}: create arrays in processes that own devices of the mesh"
            )
        made = cls._of_whole(known, layout, group)
        if layout.parts.count > 1 or any(buffer is not known for buffer in buffers):
            made._whole, made._buffers, made._combine = None, tuple(buffers), combine
        return made

    def _adopt(self, other: ShardedArray) -> None:
        self._shape, self._dtype = other._shape, other._dtype
        self._whole, self._buffers = other._whole, other._buffers
        self._layout, self._group, self._combine = other._layout, other._group, other._combine
        self._root = self._settled = self._origin = None
        self._readers = {}
        self._is_view = False

    def _buffer(self, device: int) -> Array | None:
        """Return the buffer of a device, which has values in the device's box; None if another process has it."""
        return self._whole if self._buffers is None else self._buffers[device]

    def _tile(self, device: int) -> Array:
        buffer = self._buffer(device)
        assert buffer is not None, (
            f"device {device} belongs to another process: use array.shards for the devices of this one"
        )
        # `...` makes NumPy return a 0-d array instead of a scalar.
        tile: Array = buffer[self._layout.boxes(self.shape)[device] or ...]
        return tile

    @property
    def _has_one_buffer_per_part(self) -> bool:
        if self._buffers is None:
            return True
        return self._group.member is None and len({*map(id, self._buffers)}) == self._layout.parts.count

    def _derive(self, view: Callable[[Array], Array], layout: Layout, *, is_view: bool = True) -> ShardedArray:
        """Return an array that reads this array's memory, through `view` of each buffer, until either is written to.

        If `is_view`, the result is read-only because a caller may take it for a view; otherwise it copies before a
        write.
        """
        if self._buffers is None:
            made = self._of_whole(view(self._whole), layout, self._group)  # type: ignore[arg-type]
        else:
            views = {id(buffer): view(buffer) for buffer in self._buffers if buffer is not None}
            buffers = [None if buffer is None else views[id(buffer)] for buffer in self._buffers]
            made = self._build(buffers, layout, self._group, self._combine)
        made._is_view = is_view
        made._root = weakref.ref(self) if self._root is None else self._root
        if (root := made._root()) is not None:  # if the root was freed, nothing can write to it
            key, readers = id(made), root._readers
            readers[key] = weakref.ref(made, functools.partial(readers.pop, key))
        return made

    def _as_result(self) -> ShardedArray:
        """Return this array; if it is 0-d, it becomes a read-only value, as NumPy's scalars are."""
        if not self._shape:
            self._is_view = True
        return self

    def _own(self) -> None:
        from ringlet.sharding.resharding.device_buffers import copies

        buffers = copies(self)
        if self._buffers is None:
            self._whole = next(buffer for buffer in buffers if buffer is not None)
        else:
            self._buffers = tuple(buffers)
        self._root = None

    def _writable_buffers(self) -> Sequence[Array | None]:
        """Return the writable buffer of each device; arrays that only read this memory get a copy first."""
        if self._is_view:
            kinds = "transposed and reshaped arrays" if self._shape else "elements and other 0-d results"
            raise ShardingError(
                f"assignment destination is read-only: slices, {kinds} are values, not views. Write to the source "
                "array, as in x[1:3] = value, or to array.copy()"
            )
        if self._layout.is_partial:
            from ringlet.sharding.resharding.reshard import materialized

            known = materialized(self)
            self._adopt(known)
            self._root = weakref.ref(known)  # other arrays may read the memory of `known`
        if self._root is not None:
            self._own()
        readers, self._readers = self._readers, {}
        # A list, because other threads and the garbage collector may drop readers during the loop.
        for reader in [reference() for reference in list(readers.values())]:
            if reader is not None and reader._root is not None and reader._root() is self:
                reader._own()
        return self._buffers if self._buffers is not None else (self._whole,) * self._group.num_devices

    @property
    def sharding(self) -> Sharding:
        """The division of the array over logical devices; prints as XLA's text."""
        return sharding_of(self._layout)

    @property
    def mesh(self) -> Mesh | None:
        """The mesh of the array's devices, if any."""
        return self._group.mesh

    @property
    def spec(self) -> PartitionSpec | None:
        """The axes of the mesh that divide each dimension; None without a mesh, or if its axes do not fit."""
        return None if self.mesh is None else spec_of(self._layout, self.mesh)

    @property
    def shards(self) -> list[Array]:
        """Tiles of the logical devices of this process, as views in order of the devices.

        If only one device holds the array, the list has only its tile. A tile is writable unless the array is a
        read-only value, reads the memory of another array, as after `reshard`, or another device has the same tile.
        """
        x = self._materialized()
        whole, buffers, has = x._whole, x._buffers, None if x._group.member is None else x._group.has
        shards, is_read_only = [], x._is_view or x._root is not None
        for device, box, is_shared in x._layout.tiles(x._shape):
            buffer = whole if buffers is None else buffers[device]
            if buffer is not None and (has is None or has(device)):
                tile = buffer[box]
                if is_read_only or (is_shared and tile.size):
                    tile.flags.writeable = False
                shards.append(tile)
        return shards

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole array."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements of the whole array."""
        return math.prod(self._shape)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _ufunc_call()(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return _dispatch()(self, function, types, args, kwargs)

    def __getitem__(self, key: Any) -> Any:
        from ringlet.sharding.ops.indexing import get_item

        return get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from ringlet.sharding.ops.indexing import set_item

        set_item(self, key, value)


# Collectives, strategies, variables and checkpoints accept and return sharded arrays.
register_kind(ShardedArray, ShardedKind())


@functools.cache
def _ufunc_call() -> Callable[..., Any]:
    from ringlet.sharding.ops.ufuncs import call

    return call


@functools.cache
def _dispatch() -> Callable[..., Any]:
    from ringlet.sharding.execution.array_function_table import dispatch

    return dispatch
