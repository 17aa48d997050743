"""ShardedArray: an array whose tiles lie on logical devices."""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives import Op
from ringlet.errors import ShardingError
from ringlet.sharding.array_conversion import Conversions
from ringlet.sharding.array_methods import ArrayMethods
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Layout
from ringlet.sharding.layout.layout_of import sharding_of
from ringlet.sharding.layout.mesh import NamedSharding
from ringlet.sharding.layout.sharding import Sharding

__all__ = ["ShardedArray"]

Array = NDArray[Any]


class ShardedArray(ArrayMethods, Conversions):
    """An array of which each logical device has a part, and which NumPy's functions compute with part by part.

    Strategies make it, :meth:`ringlet.TPUStrategy.experimental_split_to_logical_devices` and its like, and so does
    :func:`ringlet.sharding.shard`. Results are sharded arrays again, laid out so that as few bytes as possible would be
    sent between devices.

    What a slice, a transposed array or any other result has are values: a later change of the array that it was made
    from does not show in it, and it is not written to itself. The array that was split stays one with `whole`, as far
    as devices share memory: what is written to either is seen in the other.

    Parameters
    ----------
    whole : ndarray
        Not copied, unless in the mode ``"copy"``.
    sharding : Sharding or NamedSharding
        For as many dimensions as `whole` has. Trailing tiles are short, or empty, where sizes are no multiples.

    Raises
    ------
    TypeError
        If `whole` is no ndarray, or `sharding` no sharding.
    ShardingError, PartitionError
        If `whole` cannot be laid out as `sharding` says.

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
        "_combine",
        "_dtype",
        "_group",
        "_is_view",
        "_layout",
        "_readers",
        "_root",
        "_settled",
        "_shape",
        "_spaces",
        "_whole",
    )

    _shape: tuple[int, ...]
    _dtype: np.dtype[Any]
    # Where values are: `_whole` is the one space of all devices that have something, and `_spaces` then None.
    _whole: Array | None
    _spaces: tuple[Array | None, ...] | None
    _layout: Layout
    _group: DeviceGroup
    _combine: Op
    # The array that owns the memory which this one only reads, and those that read what this one owns.
    _root: ShardedArray | None
    _readers: dict[int, weakref.ref[ShardedArray]]
    _is_view: bool
    # What partial values combine to, once they were combined.
    _settled: ShardedArray | None

    def __init__(self, whole: Array, sharding: Sharding | NamedSharding) -> None:
        from ringlet.sharding.creation import shard

        for given, kinds in ((whole, (np.ndarray,)), (sharding, (Sharding, NamedSharding))):
            if not isinstance(given, kinds):
                raise TypeError(
                    f"a ShardedArray is made of an ndarray and a Sharding, got {given!r} of type "
                    f"{type(given).__name__}: write ShardedArray(np.asarray(whole), Sharding.tiled((2, 1)))"
                )
        self._adopt(shard(whole, sharding))

    @classmethod
    def _of_whole(cls, whole: Array, layout: Layout, group: DeviceGroup) -> ShardedArray:
        """One whose devices all have their box in one array; not for partial values."""
        made = cls.__new__(cls)
        made._shape, made._dtype = whole.shape, whole.dtype
        made._whole, made._spaces = whole, None
        made._layout, made._group, made._combine = layout, group, Op.SUM
        made._root = made._settled = None
        made._readers = {}
        made._is_view = False
        return made

    @classmethod
    def _build(
        cls, spaces: Sequence[Array | None], layout: Layout, group: DeviceGroup, combine: Op = Op.SUM
    ) -> ShardedArray:
        """One of a space for each device, None for those of other processes."""
        known = next((space for space in spaces if space is not None), None)
        if known is None:
            raise ShardingError(
                f"this process has none of the {group}: arrays on them are made by the processes that have some"
            )
        made = cls._of_whole(known, layout, group)
        if layout.parts.count > 1 or any(space is not known for space in spaces):
            made._whole, made._spaces, made._combine = None, tuple(spaces), combine
        return made

    def _adopt(self, other: ShardedArray) -> None:
        """Become another array, whose memory from now on is this one's."""
        self._shape, self._dtype = other._shape, other._dtype
        self._whole, self._spaces = other._whole, other._spaces
        self._layout, self._group, self._combine = other._layout, other._group, other._combine
        self._root = self._settled = None
        self._readers = {}
        self._is_view = False

    def _space(self, device: int) -> Array | None:
        """An array of the whole's shape that has a device's values in its box; None if they are not here."""
        return self._whole if self._spaces is None else self._spaces[device]

    def _tile(self, device: int) -> Array:
        """What a device of this process has."""
        space = self._space(device)
        assert space is not None, f"device {device} is of another process"
        tile: Array = space[
            self._layout.boxes(self.shape)[device] or ...
        ]  # an array also where there are no dimensions
        return tile

    @property
    def _has_one_space_per_part(self) -> bool:
        """Whether all devices share memory, as far as they have values of the same array."""
        if self._spaces is None:
            return True
        return self._group.member is None and len({*map(id, self._spaces)}) == self._layout.parts.count

    # Reading the memory of another array

    def _derive(self, view: Callable[[Array], Array], layout: Layout, *, is_view: bool = True) -> ShardedArray:
        """Give an array that reads this one's memory until either is written to.

        Parameters
        ----------
        view : callable
            Gives a view of a space.
        layout : Layout
            Of the result.
        is_view : bool
            Whether writing to the result is refused, because it looks as if it would change this one; else it gets
            memory of its own first.
        """
        if self._spaces is None:
            made = self._of_whole(view(self._whole), layout, self._group)  # type: ignore[arg-type]
        else:
            views = {id(space): view(space) for space in self._spaces if space is not None}
            spaces = [None if space is None else views[id(space)] for space in self._spaces]
            made = self._build(spaces, layout, self._group, self._combine)
        made._is_view = is_view
        made._root = root = self if self._root is None else self._root
        key, readers = id(made), root._readers
        readers[key] = weakref.ref(made, functools.partial(readers.pop, key))
        return made

    def _as_result(self) -> ShardedArray:
        """Return this array; without dimensions it is a value from now on, as NumPy's numbers are."""
        if not self._shape:
            self._is_view = True
        return self

    def _own(self) -> None:
        """Move to memory of this array's own."""
        from ringlet.sharding.resharding.device_buffers import copies

        spaces = copies(self)
        if self._spaces is None:
            self._whole = next(space for space in spaces if space is not None)
        else:
            self._spaces = tuple(spaces)
        self._root = None

    def _spaces_to_write(self) -> Sequence[Array | None]:
        """Give the space of each device for writing to; arrays that only read this memory have a copy from then on.

        Raises
        ------
        ShardingError
            If this array looks as if it were a view of another one.
        """
        if self._is_view:
            kinds = "transposed and reshaped arrays" if self._shape else "elements and other results without dimensions"
            raise ShardingError(
                f"assignment destination is read-only: slices, {kinds} are values, not views. "
                "Write to the array that they were taken from, x[1:3] = value, or to a copy, array.copy()"
            )
        if self._layout.is_partial:
            from ringlet.sharding.resharding.reshard import settled

            known = settled(self)
            self._adopt(known)
            self._root = known  # which others may read
        if self._root is not None:
            self._own()
        readers, self._readers = self._readers, {}
        # A list first: other threads, and the garbage collector, may let go of readers meanwhile.
        for reader in [reference() for reference in list(readers.values())]:
            if reader is not None and reader._root is self:
                reader._own()
        return self._spaces if self._spaces is not None else (self._whole,) * self._group.num_devices

    # What arrays have

    @property
    def sharding(self) -> Sharding:
        """Which logical device has which part."""
        return sharding_of(self._layout)

    @property
    def shards(self) -> list[Array]:
        """What each logical device has that has something, and is of this process: views, in order of the devices.

        They may be written to where no other device has the same part.
        """
        from ringlet.sharding.shards import shards_of

        return shards_of(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """Size along each dimension of the whole."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements of the whole."""
        return math.prod(self._shape)

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from ringlet.sharding.ops.ufuncs import call

        return call(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        from ringlet.sharding.execution.array_function_table import dispatch

        return dispatch(self, function, types, args, kwargs)

    def __getitem__(self, key: Any) -> Any:
        from ringlet.sharding.ops.indexing import get_item

        return get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from ringlet.sharding.ops.indexing import set_item

        set_item(self, key, value)
