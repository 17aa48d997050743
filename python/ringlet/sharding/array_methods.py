"""Methods and operators that arrays have, in terms of NumPy's functions, which are dispatched."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

if TYPE_CHECKING:
    from ringlet.sharding.layout.mesh import NamedSharding
    from ringlet.sharding.layout.sharding import Sharding
    from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["ArrayMethods"]

_type = type  # which a parameter of ndarray's method `view` is called


def _as(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = function.__name__
    method.__doc__ = f"As :func:`numpy.{function.__name__}`, of this array."
    return method


def _in_place(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        """Change the array; one that is not written to gives a changed one, so that ``x[1:3] += 1`` changes `x`."""
        if getattr(type(other), "__array_ufunc__", ufunc) is None:
            return NotImplemented
        if self._is_number():
            return ufunc(self, other)
        return ufunc(self, other, out=(self._like_itself() if self._is_view else self,))

    return method


class _Probe(np.ndarray):
    """An array that tells which ufunc NumPy takes for an operator, and of what dtype the array is by then."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        return ufunc, inputs[0].dtype


@lru_cache(maxsize=256)
def _root_or_product(
    operation: Callable[[Any, Any], Any], dtype: np.dtype[Any], _: str, exponent: complex
) -> tuple[np.ufunc, np.dtype[Any]] | None:
    """What NumPy computes powers with for an exponent where it is not :func:`numpy.power`: faster, with other bits."""
    ufunc, converted = operation(np.empty(0, dtype).view(_Probe), exponent)
    return (ufunc, converted) if ufunc.nin == 1 else None


def _power(operation: Callable[[Any, Any], Any], array: Any, exponent: Any, out: Any = None) -> Any:
    """Give a power as the operator does; None where it is that of the ufunc."""
    number = exponent[()] if isinstance(exponent, np.ndarray) and not exponent.ndim else exponent
    if not isinstance(number, (int, float, complex, np.number)):
        return None
    found = _root_or_product(operation, array.dtype, type(number).__name__, number)
    return found and found[0](array.astype(found[1], copy=False), out=out)


def _equality(ufunc: np.ufunc, compared: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        """Compare elements; records field by field, and what cannot be compared is not equal, as for arrays."""
        if getattr(type(other), "__array_ufunc__", ufunc) is None:
            return NotImplemented
        try:
            return ufunc(self, other)
        except TypeError as error:
            # NumPy's name for the error of ufuncs that have no loop for such dtypes, which it has not made public.
            if type(error).__name__ != "UFuncTypeError":
                raise
        from ringlet.sharding.ops.pointwise import tilewise

        return tilewise(ufunc.__name__, compared, [self, other])

    return method


def _set_part(x: Any, part: Callable[[Any], Any], value: Any) -> None:
    """Write to the real or to the imaginary parts of an array's own memory."""
    spaces = x._spaces_to_write()
    if x._whole is not None:
        target = x._of_whole(part(x._whole), x._layout, x._group)
    else:
        views = {id(space): part(space) for space in spaces if space is not None}
        target = x._build([None if space is None else views[id(space)] for space in spaces], x._layout, x._group)
    target[...] = value


def _one_tuple(numbers: tuple[Any, ...]) -> Any:
    """What was given one by one, or as one tuple."""
    return numbers[0] if len(numbers) == 1 else numbers


class ArrayMethods(np.lib.mixins.NDArrayOperatorsMixin):
    """Methods and operators of a :class:`~ringlet.sharding.ShardedArray`; they mean what those of arrays mean."""

    __slots__ = ()

    # Above those of ndarray and its subclasses.
    __array_priority__ = 1000.0

    all, any = _as(np.all), _as(np.any)
    argmax, argmin = _as(np.argmax), _as(np.argmin)
    argpartition, argsort = _as(np.argpartition), _as(np.argsort)
    choose, clip = _as(np.choose), _as(np.clip)
    conj = conjugate = _as(np.conjugate)
    cumprod, cumsum = _as(np.cumprod), _as(np.cumsum)
    diagonal, trace = _as(np.diagonal), _as(np.trace)
    dot = _as(np.dot)
    max, min = _as(np.max), _as(np.min)
    mean, std, var = _as(np.mean), _as(np.std), _as(np.var)
    nonzero = _as(np.nonzero)
    prod, sum = _as(np.prod), _as(np.sum)
    put = _as(np.put)
    ravel = _as(np.ravel)
    repeat = _as(np.repeat)
    round = _as(np.round)
    searchsorted = _as(np.searchsorted)
    squeeze = _as(np.squeeze)
    swapaxes = _as(np.swapaxes)
    take = _as(np.take)

    def reshape(self: Any, *shape: Any, **kwargs: Any) -> Any:
        """As :func:`numpy.reshape`; the sizes may be given one by one."""
        return np.reshape(self, _one_tuple(shape), **kwargs)

    def transpose(self: Any, *axes: Any) -> Any:
        """As :func:`numpy.transpose`; the axes may be given one by one."""
        return np.transpose(self, _one_tuple(axes) if axes else None)

    @property
    def T(self: Any) -> Any:  # noqa: N802  # NumPy's name
        """The array with its dimensions in reverse order."""
        return np.transpose(self)

    @property
    def mT(self: Any) -> Any:  # noqa: N802  # NumPy's name
        """The array with its last two dimensions exchanged."""
        if len(self.shape) < 2:
            raise ValueError(f"matrices have 2 dimensions or more, and the shape is {self.shape}")
        return np.swapaxes(self, -1, -2)

    @property
    def real(self: Any) -> Any:
        """The real parts; setting them changes the array."""
        x = self._known()
        return x._derive(lambda space: space.real, x._layout)

    @real.setter
    def real(self: Any, value: Any) -> None:
        _set_part(self, lambda space: space.real, value)

    @property
    def imag(self: Any) -> Any:
        """The imaginary parts; setting them changes the array."""
        if self.dtype.kind != "c":
            return np.zeros_like(self)
        x = self._known()
        return x._derive(lambda space: space.imag, x._layout)

    @imag.setter
    def imag(self: Any, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError(f"array does not have imaginary part to set: its dtype is {self.dtype}")
        _set_part(self, lambda space: space.imag, value)

    @property
    def flat(self: Any) -> Any:
        """The elements in one dimension, to be read; what it is set to is repeated over the array."""
        return np.ravel(self)

    @flat.setter
    def flat(self: Any, value: Any) -> None:
        self[...] = np.resize(value, self.shape)

    @property
    def itemsize(self: Any) -> int:
        """Bytes of an element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self: Any) -> int:
        """Bytes of the whole."""
        return int(self.size * self.dtype.itemsize)

    def compress(self: Any, condition: Any, axis: int | None = None, out: Any = None) -> Any:
        """As :func:`numpy.compress`, of this array."""
        return np.compress(condition, self, axis, out)

    def flatten(self: Any, order: Any = "C") -> Any:
        """Give a copy with one dimension."""
        return np.ravel(self, order=order).copy()

    def copy(self: Any, order: Any = "C") -> ShardedArray:
        """Give a copy, laid out alike, in memory of its own.

        Parameters
        ----------
        order : str
            Without effect.
        """
        from ringlet.sharding.resharding.device_buffers import copies

        made: ShardedArray = self._build(copies(self), self._layout, self._group, self._combine)
        return made

    def astype(
        self: Any,
        dtype: DTypeLike,
        order: Any = "K",
        casting: Any = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> ShardedArray:
        """Convert the elements; parameters are those of ndarray's method."""
        from ringlet.sharding.ops.like_functions import astype

        converted: ShardedArray = astype(self, dtype, order, casting, subok, copy)
        return converted

    def reshard(self: Any, sharding: Sharding | NamedSharding) -> ShardedArray:
        """Give the same values laid out in another way, with as few bytes sent as can be.

        Parameters
        ----------
        sharding : Sharding or NamedSharding
            For arrays of as many dimensions, on the same devices.

        Returns
        -------
        ShardedArray
            It reads this array's memory, where devices share memory, until either is written to.

        Raises
        ------
        ShardingError
            If the sharding is not for this array, or its devices are others.

        Examples
        --------
        >>> from ringlet.sharding import Sharding, shard
        >>> x = shard(np.arange(8).reshape(2, 4), Sharding.tiled((2, 1)))
        >>> x.reshard(Sharding.tiled((1, 2))).shards[1].tolist()
        [[2, 3], [6, 7]]
        """
        from ringlet.sharding.resharding.reshard import reshard

        return reshard(self, sharding)

    def view(self: Any, dtype: Any = None, type: Any = None) -> Any:  # NumPy's name
        """Return the same bytes as elements of another dtype: a value, as slices are.

        Parameters
        ----------
        dtype : dtype, optional
        type : type, optional
            No subclasses of ndarray are sharded, so there is no other one to give.

        Raises
        ------
        TypeError
            If a class is given.
        ValueError
            NumPy's; also if elements of another size are asked for and the last dimension is cut.

        Examples
        --------
        >>> from ringlet.sharding import Sharding, shard
        >>> shard(np.array([1.0, -0.0]), Sharding.tiled((2,))).view(np.int64).tolist()
        [4607182418800017408, -9223372036854775808]
        """
        for given in (dtype, type):
            if isinstance(given, _type) and issubclass(given, np.ndarray):
                raise TypeError(
                    f"a sharded array has no view of type {given.__name__}: give a dtype, or view np.asarray(array)"
                )
        x = self._known()
        if dtype is None:
            return x._derive(lambda space: space, x._layout)
        if np.dtype(dtype).itemsize != x.itemsize and x.shape and x._layout.cuts[-1].count > 1:
            raise ValueError(
                f"elements of {x.itemsize} bytes become elements of {np.dtype(dtype).itemsize} bytes along the last "
                f"dimension, which is cut: {x.sharding}. Reshard the array so that its last dimension is whole"
            )
        return x._derive(lambda space: space.view(dtype), x._layout)

    def byteswap(self: Any, inplace: bool = False) -> Any:
        """Return the array with the bytes of each element in reverse order, or change the array so."""
        swapped = self.astype(self.dtype.newbyteorder()).view(self.dtype)
        if not inplace:
            return swapped.copy()
        self[...] = swapped
        return self

    def fill(self: Any, value: Any) -> None:
        """Set all elements to one value."""
        held = np.empty((), self.dtype)
        held.fill(value)
        self[...] = held

    def sort(self: Any, axis: int = -1, **kwargs: Any) -> None:
        """Sort along an axis, in place."""
        self[...] = np.sort(self, axis, **kwargs)

    def partition(self: Any, kth: Any, axis: int = -1, **kwargs: Any) -> None:
        """Partition along an axis, in place."""
        self[...] = np.partition(self, kth, axis, **kwargs)

    __iadd__, __isub__, __imul__ = _in_place(np.add), _in_place(np.subtract), _in_place(np.multiply)
    __itruediv__, __ifloordiv__ = _in_place(np.true_divide), _in_place(np.floor_divide)
    __imod__, __imatmul__ = _in_place(np.remainder), _in_place(np.matmul)
    __ilshift__, __irshift__ = _in_place(np.left_shift), _in_place(np.right_shift)
    __iand__, __ior__, __ixor__ = _in_place(np.bitwise_and), _in_place(np.bitwise_or), _in_place(np.bitwise_xor)

    def __pow__(self: Any, exponent: Any) -> Any:
        made = _power(operator.pow, self, exponent)
        return super().__pow__(exponent) if made is None else made

    def __ipow__(self: Any, exponent: Any) -> Any:
        if self._is_number():
            return self**exponent
        made = _power(operator.ipow, self, exponent, self._like_itself() if self._is_view else self)
        return _in_place(np.power)(self, exponent) if made is None else made

    __eq__, __ne__ = _equality(np.equal, operator.eq), _equality(np.not_equal, operator.ne)

    def _is_number(self: Any) -> bool:
        """Whether this is a result without dimensions, for which NumPy has a number: nothing writes to it."""
        return self._is_view and not self._shape

    def _like_itself(self: Any) -> Any:
        """An array with no values yet."""
        from ringlet.sharding.resharding.device_buffers import empty

        return empty(self.shape, self.dtype, self._layout.without_parts(), self._group)

    def __iter__(self: Any) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __delitem__(self: Any, key: Any) -> None:
        raise ValueError(f"cannot delete array elements: write array = np.delete(array, {key!r})")

    def __contains__(self: Any, value: Any) -> bool:
        return bool(np.any(self == value))

    def __hash__(self: Any) -> int:
        if not self._is_number():
            raise TypeError(f"unhashable type: '{type(self).__name__}'")
        return hash(self.item())
