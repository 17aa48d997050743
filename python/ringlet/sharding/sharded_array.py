"""ShardedArray: an array that knows its tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ringlet.sharding.sharding import Sharding
from ringlet.sharding.tile_views import tile_views
from ringlet.values.operand import converted
from ringlet.values.stand_in import StandIn, plain

__all__ = ["ShardedArray"]

Array = NDArray[Any]


class ShardedArray(StandIn):
    """An array with the values of the whole, of which each logical device holds a part.

    Strategies make it: :meth:`ringlet.TPUStrategy.experimental_split_to_logical_devices` and its like. It computes by
    gathering: NumPy's functions, operators and methods work on the whole, which is in host memory already, and give
    what they give for it, without a sharding. That they work tile by tile is left to a later version. They see the
    whole read-only, as a variable is seen; its tiles may be written to if the array may that they are views of.

    Parameters
    ----------
    whole : ndarray
        Not copied.
    sharding : Sharding
        Of as many dimensions as `whole`, each a multiple of its number of tiles.

    Raises
    ------
    TypeError
        If `whole` is no ndarray, or `sharding` no Sharding.
    PartitionError
        If `whole` cannot be cut as `sharding` says.

    Examples
    --------
    >>> import numpy as np, ringlet
    >>> sharded = ShardedArray(np.arange(8).reshape(2, 4), Sharding.tiled((1, 2)))
    >>> sharded.shards[1]
    array([[2, 3],
           [6, 7]])
    >>> sharded.sum(axis=0), np.max(sharded + 1)
    (array([ 4,  6,  8, 10]), np.int64(8))
    """

    __slots__ = ("__weakref__", "_sharding", "_whole")

    def __init__(self, whole: Array, sharding: Sharding) -> None:
        for given, kind in ((whole, np.ndarray), (sharding, Sharding)):
            if not isinstance(given, kind):
                raise TypeError(
                    f"a ShardedArray is made of an ndarray and a Sharding, got {given!r} of type "
                    f"{type(given).__name__}: write ShardedArray(np.asarray(whole), Sharding.tiled((2, 1)))"
                )
        sharding.check_shape(whole.shape)
        self._whole = whole
        self._sharding = sharding

    @classmethod
    def _of(cls, whole: Array, sharding: Sharding) -> ShardedArray:
        """One whose sharding is known to fit."""
        made = cls.__new__(cls)
        made._whole = whole
        made._sharding = sharding
        return made

    def _as_operand(self) -> Array:
        whole = self._whole
        if whole.flags.writeable:
            whole = whole.view()
            whole.flags.writeable = False
        return whole

    @property
    def sharding(self) -> Sharding:
        """Which logical device holds which part."""
        return self._sharding

    @property
    def shards(self) -> list[Array]:
        """What each logical device holds: views of the whole, which share its memory, in order of the tiles.

        The whole itself for the device of a tensor that was assigned to one, and once for each where all have it.
        """
        whole, sharding = self._whole, self._sharding
        if type(whole) is not np.ndarray:
            whole = np.asarray(whole)
        if sharding.kind == "tiled":
            return tile_views(whole, sharding.tile_assignment_dimensions)
        return [whole] * (sharding.num_devices if sharding.kind == "replicated" else 1)

    # What arrays have

    @property
    def shape(self) -> tuple[int, ...]:
        """Size along each dimension of the whole."""
        shape: tuple[int, ...] = self._whole.shape
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements."""
        return self._whole.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._whole.ndim

    @property
    def size(self) -> int:
        """Number of elements of the whole."""
        return self._whole.size

    def __getattr__(self, name: str) -> Any:
        # Not those that copy and pickle look for on objects without values.
        if name in ShardedArray.__slots__ or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return getattr(self._as_operand(), name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(self._whole) if not name.startswith("__"))})

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return converted(self._as_operand(), dtype, copy)

    # Consumers of DLPack share the memory, as those of tiles do; most of them cannot do so with a read-only array.

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._whole.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._whole.__dlpack_device__()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        # NumPy's own check of `at` does not see that the array is read-only.
        written = inputs[:1] if method == "at" else kwargs.get("out", ())
        if any(isinstance(place, ShardedArray) for place in written):
            _refuse_write()
        return getattr(ufunc, method)(*_gathered(inputs), **_gathered(kwargs))

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if isinstance(kwargs.get("out"), ShardedArray):
            _refuse_write()
        return function(*_gathered(args), **_gathered(kwargs))

    def __getitem__(self, key: Any) -> Any:
        return self._as_operand()[_gathered(key)]

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        _refuse_write()

    def __eq__(self, other: object) -> Any:
        return self._whole == plain(other)

    def __ne__(self, other: object) -> Any:
        return self._whole != plain(other)

    __hash__ = None  # type: ignore[assignment]  # == compares elements

    def __format__(self, specification: str) -> str:
        return format(self._whole[()], specification) if specification else str(self)

    def __repr__(self) -> str:
        return f"ShardedArray({self._whole!r}, sharding={self._sharding})"

    def __str__(self) -> str:
        return str(self._whole)


def _gathered(value: Any) -> Any:
    """Sharded arrays as the whole, at any depth of what NumPy's functions take."""
    if isinstance(value, ShardedArray):
        return value._as_operand()
    if isinstance(value, (tuple, list)):
        items = map(_gathered, value)
        return list(items) if isinstance(value, list) else tuple(items)
    return {key: _gathered(item) for key, item in value.items()} if isinstance(value, dict) else value


def _refuse_write() -> NoReturn:
    raise TypeError(
        "a ShardedArray is not written to: its values may be those of other devices too. Change a copy, "
        "array = np.array(sharded), or write to its tiles, sharded.shards, if the array that was split may be changed"
    )
