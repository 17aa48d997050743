"""Methods and operators of sharded arrays, written with NumPy's dispatched functions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from ringlet.collectives.argument_parsing import shortened

if TYPE_CHECKING:
    from ringlet.sharding.layout.mesh import NamedSharding
    from ringlet.sharding.layout.partition_spec import PartitionSpec
    from ringlet.sharding.layout.sharding import Sharding
    from ringlet.sharding.sharded_array import ShardedArray

_type = type  # the parameter `type` of `view` hides the builtin


def _as(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = function.__name__
    method.__doc__ = f"Call :func:`numpy.{function.__name__}` with this array."
    return method


def _in_place(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        """Update the array; for a view, such as a slice, return a new array, which ``x[1:3] += 1`` then assigns."""
        if getattr(type(other), "__array_ufunc__", ufunc) is None:
            return NotImplemented
        if self._is_number():
            return ufunc(self, other)
        return ufunc(self, other, out=(self._like_itself() if self._is_view else self,))

    return method


class _Probe(np.ndarray):
    """Array whose operators return the ufunc that NumPy applies for them, and the dtype of its input."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        return ufunc, inputs[0].dtype


@lru_cache(maxsize=256)
def _root_or_product(
    operation: Callable[[Any, Any], Any], dtype: np.dtype[Any], _: str, exponent: complex
) -> tuple[np.ufunc, np.dtype[Any]] | None:
    """Return the ufunc, such as sqrt, and the dtype that NumPy uses for a power; None for :func:`numpy.power`."""
    ufunc, converted = operation(np.empty(0, dtype).view(_Probe), exponent)
    return (ufunc, converted) if ufunc.nin == 1 else None


def _power(operation: Callable[[Any, Any], Any], array: Any, exponent: Any, out: Any = None) -> Any:
    """Return a power as the operator computes it; None if the operator uses :func:`numpy.power`."""
    number = exponent[()] if isinstance(exponent, np.ndarray) and not exponent.ndim else exponent
    if not isinstance(number, (int, float, complex, np.number)):
        return None
    found = _root_or_product(operation, array.dtype, type(number).__name__, number)
    return found and found[0](array.astype(found[1], copy=False), out=out)


def _equality(ufunc: np.ufunc, compared: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        """Compare elements (structured elements field by field); incomparable values are unequal, as in NumPy."""
        if getattr(type(other), "__array_ufunc__", ufunc) is None:
            return NotImplemented
        try:
            return ufunc(self, other)
        except TypeError as error:
            # NumPy's private exception class for "no loop for these dtypes".
            if type(error).__name__ != "UFuncTypeError":
                raise
        from ringlet.sharding.ops.pointwise import apply_pointwise

        return apply_pointwise(ufunc.__name__, compared, [self, other])

    return method


def _set_part(x: Any, name: str, value: Any) -> None:
    part = operator.attrgetter(name)
    if not isinstance(value, type(x)):
        plain = np.empty(np.shape(value), x.dtype)
        setattr(plain, name, value)  # converts the value, and raises errors and warnings, as NumPy does
        value = part(plain)
    buffers = x._writable_buffers()
    if x._whole is not None:
        target = x._of_whole(part(x._whole), x._layout, x._group)
    else:
        views = {id(buffer): part(buffer) for buffer in buffers if buffer is not None}
        target = x._build([None if buffer is None else views[id(buffer)] for buffer in buffers], x._layout, x._group)
    target[...] = value


def _one_tuple(numbers: tuple[Any, ...]) -> Any:
    return numbers[0] if len(numbers) == 1 else numbers


class ArrayMethods(np.lib.mixins.NDArrayOperatorsMixin):
    """Methods and operators of a :class:`~ringlet.sharding.ShardedArray`, equivalent to those of ndarray."""

    __slots__ = ()

    # Higher than the priority of ndarray and its subclasses.
    __array_priority__ = 1000.0

    if TYPE_CHECKING:  # for type checkers: NumPy's mixin has no annotations

        def __add__(self, other: Any, /) -> ShardedArray: ...
        def __radd__(self, other: Any, /) -> ShardedArray: ...
        def __sub__(self, other: Any, /) -> ShardedArray: ...
        def __rsub__(self, other: Any, /) -> ShardedArray: ...
        def __mul__(self, other: Any, /) -> ShardedArray: ...
        def __rmul__(self, other: Any, /) -> ShardedArray: ...
        def __matmul__(self, other: Any, /) -> ShardedArray: ...
        def __rmatmul__(self, other: Any, /) -> ShardedArray: ...
        def __truediv__(self, other: Any, /) -> ShardedArray: ...
        def __rtruediv__(self, other: Any, /) -> ShardedArray: ...
        def __floordiv__(self, other: Any, /) -> ShardedArray: ...
        def __rfloordiv__(self, other: Any, /) -> ShardedArray: ...
        def __mod__(self, other: Any, /) -> ShardedArray: ...
        def __rmod__(self, other: Any, /) -> ShardedArray: ...
        def __neg__(self) -> ShardedArray: ...

    all, any = _as(np.all), _as(np.any)
    argmax, argmin = _as(np.argmax), _as(np.argmin)
    argpartition, argsort = _as(np.argpartition), _as(np.argsort)
    choose = _as(np.choose)
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
        """Call :func:`numpy.reshape`; sizes may be separate arguments."""
        return np.reshape(self, _one_tuple(shape), **kwargs)

    def transpose(self: Any, *axes: Any) -> Any:
        """Call :func:`numpy.transpose`; axes may be separate arguments."""
        return np.transpose(self, _one_tuple(axes) if axes else None)

    @property
    def T(self: Any) -> Any:  # noqa: N802  # NumPy's name
        """The array with its dimensions in reverse order."""
        return np.transpose(self)

    @property
    def mT(self: Any) -> Any:  # noqa: N802  # NumPy's name
        """The array with its last two dimensions exchanged."""
        if len(self.shape) < 2:
            raise ValueError(
                f"mT requires 2 dimensions or more, got shape {self.shape}: use T, or add a dimension with array[None]"
            )
        return np.swapaxes(self, -1, -2)

    @property
    def real(self: Any) -> Any:
        """The real parts; assignment changes the array."""
        x = self._materialized()
        return x._derive(lambda buffer: buffer.real, x._layout)

    @real.setter
    def real(self: Any, value: Any) -> None:
        _set_part(self, "real", value)

    @property
    def imag(self: Any) -> Any:
        """The imaginary parts, zeros if the array is real; assignment changes a complex array."""
        if self.dtype.kind != "c":
            return np.zeros_like(self)
        x = self._materialized()
        return x._derive(lambda buffer: buffer.imag, x._layout)

    @imag.setter
    def imag(self: Any, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError(f"array does not have imaginary part to set: its dtype is {self.dtype}")
        _set_part(self, "imag", value)

    @property
    def flat(self: Any) -> Any:
        """A read-only 1-d array of the elements. An assigned value is repeated or truncated to the array's size."""
        return np.ravel(self)

    @flat.setter
    def flat(self: Any, value: Any) -> None:
        value = value if isinstance(value, ArrayMethods) else np.asarray(value, self.dtype)
        if value.size:
            self[...] = np.resize(value, self.shape)

    @property
    def itemsize(self: Any) -> int:
        """Size of an element in bytes."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self: Any) -> int:
        """Size of all elements in bytes."""
        return int(self.size * self.dtype.itemsize)

    def clip(self: Any, min: Any = None, max: Any = None, out: Any = None, **kwargs: Any) -> Any:  # NumPy's names
        """Call :func:`numpy.clip` with this array; either bound may be omitted."""
        return np.clip(self, min, max, out=out, **kwargs)

    def compress(self: Any, condition: Any, axis: int | None = None, out: Any = None) -> Any:
        """Call :func:`numpy.compress` with this array."""
        return np.compress(condition, self, axis, out)

    def flatten(self: Any, order: Any = "C") -> Any:
        """Return a copy with one dimension."""
        return np.ravel(self, order=order).copy()

    def copy(self: Any, order: Any = "C") -> ShardedArray:
        """Return a copy with the same layout, in its own memory.

        Parameters
        ----------
        order : str
            Has no effect.
        """
        from ringlet.sharding.resharding.device_buffers import copies

        made: ShardedArray = self._build(copies(self), self._layout, self._group, self._combine)
        return made

    def astype(
        self: Any, dtype: DTypeLike, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
    ) -> ShardedArray:
        """Convert the elements; parameters as for ``ndarray.astype``."""
        from ringlet.sharding.ops.like_functions import astype

        converted: ShardedArray = astype(self, dtype, order, casting, subok, copy)
        return converted

    def matvec(self: Any, x: Any) -> Any:
        """Return ``self @ x``; solvers of ``scipy.sparse.linalg`` accept objects with this method."""
        return self @ x

    def rmatvec(self: Any, x: Any) -> Any:
        """Return ``self.T.conj() @ x``."""
        return self.T.conj() @ x

    def reshard(self: Any, sharding: Sharding | NamedSharding | PartitionSpec) -> ShardedArray:
        """Return the same values in another sharding.

        Sends as few bytes as possible or, on devices with positions in a topology, takes the least predicted time.

        Parameters
        ----------
        sharding : Sharding, NamedSharding or PartitionSpec
            The new sharding, for the same number of dimensions and the same devices. A PartitionSpec refers to the mesh
            of this array.

        Returns
        -------
        ShardedArray
            If devices share memory and neither sharding is unreduced, the result shares this array's memory until
            either array is written to.

        Raises
        ------
        ShardingError, PartitionError
            If the sharding does not fit this array, or is for other devices.

        Examples
        --------
        >>> from ringlet.sharding import Sharding, shard
        >>> x = shard(np.arange(8).reshape(2, 4), Sharding.tiled((2, 1)))
        >>> x.reshard(Sharding.tiled((1, 2))).shards[1].tolist()
        [[2, 3], [6, 7]]
        """
        from ringlet.sharding.resharding.reshard import reshard

        return reshard(self, sharding)

    def view(self: Any, dtype: Any = None, type: Any = None) -> Any:  # NumPy's parameter names
        """Return the same bytes as elements of another dtype; the result is a read-only value, like a slice.

        Parameters
        ----------
        dtype : dtype, optional
        type : type, optional
            Not supported: subclasses of ndarray are not sharded.

        Raises
        ------
        TypeError
            If a class is given.
        ValueError
            As in NumPy, and if the element size changes while the last dimension is divided.

        Examples
        --------
        >>> from ringlet.sharding import Sharding, shard
        >>> shard(np.array([1.0, -0.0]), Sharding.tiled((2,))).view(np.int64).tolist()
        [4607182418800017408, -9223372036854775808]
        """
        for given in (dtype, type):
            if isinstance(given, _type) and issubclass(given, np.ndarray):
                raise TypeError(
                    f"a sharded array has no view of type {given.__name__}: pass a dtype, or use np.asarray(array)"
                )
        x = self._materialized()
        if dtype is None:
            return x._derive(lambda buffer: buffer, x._layout)
        if np.dtype(dtype).itemsize != x.itemsize and x.shape and x._layout.cuts[-1].count > 1:
            raise ValueError(
                f"elements of {x.itemsize} bytes cannot become elements of {np.dtype(dtype).itemsize} bytes along the "
                f"last dimension, which is divided: {x.sharding}. Reshard the array so that its last dimension is not "
                "divided"
            )
        return x._derive(lambda buffer: buffer.view(dtype), x._layout)

    def byteswap(self: Any, inplace: bool = False) -> Any:
        """Return the array with the bytes of each element reversed, or reverse them in place."""
        swapped = self.astype(self.dtype.newbyteorder()).view(self.dtype)
        if not inplace:
            return swapped.copy()
        self[...] = swapped
        return self

    def fill(self: Any, value: Any) -> None:
        """Set all elements to one value."""
        filled = np.empty((), self.dtype)
        filled.fill(value)
        self[...] = filled

    def sort(self: Any, axis: int = -1, **kwargs: Any) -> None:
        """Sort along an axis, in place."""
        self[...] = np.sort(self, operator.index(axis), **kwargs)

    def partition(self: Any, kth: Any, axis: int = -1, **kwargs: Any) -> None:
        """Partition along an axis, in place."""
        self[...] = np.partition(self, kth, operator.index(axis), **kwargs)

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
        """Return whether this is a read-only 0-d result, for which NumPy returns a scalar."""
        return self._is_view and not self._shape

    def _like_itself(self: Any) -> Any:
        from ringlet.sharding.resharding.device_buffers import empty

        return empty(self.shape, self.dtype, self._layout.without_parts(), self._group)

    def __iter__(self: Any) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __delitem__(self: Any, key: Any) -> None:
        raise ValueError(f"cannot delete array elements: write array = np.delete(array, {shortened(key)})")

    def __contains__(self: Any, value: Any) -> bool:
        return bool(np.any(self == value))

    def __hash__(self: Any) -> int:
        if not self._is_number():
            raise TypeError(f"unhashable type: '{type(self).__name__}'")
        return hash(self.item())
