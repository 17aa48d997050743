"""Mirrored: a value that is the same on every replica, and behaves as that value."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ringlet.values.base import DistributedValues

__all__ = ["Mirrored"]

T_co = TypeVar("T_co", covariant=True)


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Mirrored[Any], other: Any) -> Any:
        return function(self._get(), other._get() if isinstance(other, Mirrored) else other)

    return method


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Mirrored[Any], other: Any) -> Any:
        return function(other, self._get())

    return method


def _unary(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: Mirrored[Any]) -> Any:
        return function(self._get())

    return method


class Mirrored(DistributedValues[T_co]):
    """A value that is kept equal on all replicas (``tf.types.experimental.distributed.Mirrored``).

    It behaves as its value: operators, attributes and conversions go to the current replica's component, or to the
    first component outside of replicas. Results are plain values.

    Parameters
    ----------
    values : iterable
        One component for each replica of this process, in replica order.

    Examples
    --------
    >>> rate = Mirrored([np.float64(0.5), np.float64(0.5)])
    >>> rate
    Mirrored:{
      0: np.float64(0.5),
      1: np.float64(0.5)
    }
    >>> print(2 * rate, rate.dtype)
    1.0 float64
    """

    __slots__ = ()

    def _get(self) -> T_co:
        for value in self._of_current_replica():
            return value
        return self._values[0]

    def __getattr__(self, name: str) -> Any:
        # Only reached for names that the class lacks. Protocols such as copying and pickling ask for theirs, and must
        # not find those of the component; while an object is being unpickled it has no component yet.
        if name.startswith("__") or name == "_values":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return getattr(self._get(), name)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        value = self._get()
        array = np.asarray(value, dtype=dtype)
        return array.copy() if copy and array is value else array

    def __iter__(self) -> Iterator[Any]:
        return iter(self._get())  # type: ignore[call-overload,no-any-return]  # fails as the value itself would

    def __getitem__(self, key: Any) -> Any:
        return self._get()[key]  # type: ignore[index]  # fails as the value itself would

    def __divmod__(self, other: Any) -> Any:
        return divmod(self._get(), other)

    def __rdivmod__(self, other: Any) -> Any:
        return divmod(other, self._get())

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._get(), digits)  # type: ignore[call-overload]  # fails as the value itself would

    def __format__(self, specification: str) -> str:
        return format(self._get(), specification) if specification else str(self)

    __len__ = _unary(len)
    __bool__ = _unary(bool)
    __int__ = _unary(int)
    __float__ = _unary(float)
    __complex__ = _unary(complex)
    __index__ = _unary(operator.index)
    __neg__, __pos__, __abs__ = _unary(operator.neg), _unary(operator.pos), _unary(abs)
    __invert__ = _unary(operator.invert)
    __contains__ = _binary(operator.contains)

    __add__, __radd__ = _binary(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _binary(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _binary(operator.mul), _reflected(operator.mul)
    __matmul__, __rmatmul__ = _binary(operator.matmul), _reflected(operator.matmul)
    __truediv__, __rtruediv__ = _binary(operator.truediv), _reflected(operator.truediv)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv), _reflected(operator.floordiv)
    __mod__, __rmod__ = _binary(operator.mod), _reflected(operator.mod)
    __pow__, __rpow__ = _binary(operator.pow), _reflected(operator.pow)
    __and__, __rand__ = _binary(operator.and_), _reflected(operator.and_)
    __or__, __ror__ = _binary(operator.or_), _reflected(operator.or_)
    __xor__, __rxor__ = _binary(operator.xor), _reflected(operator.xor)
    __lshift__, __rlshift__ = _binary(operator.lshift), _reflected(operator.lshift)
    __rshift__, __rrshift__ = _binary(operator.rshift), _reflected(operator.rshift)

    __lt__, __le__ = _binary(operator.lt), _binary(operator.le)
    __gt__, __ge__ = _binary(operator.gt), _binary(operator.ge)
    __eq__, __ne__ = _binary(operator.eq), _binary(operator.ne)
    # Equality is that of the value, elementwise for arrays, so only identity can be hashed.
    __hash__ = object.__hash__
