"""OperatorProxy: operators and conversions that forward to another value."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any


def plain(other: Any) -> Any:
    """Return the value of an OperatorProxy; return any other object unchanged."""
    return other._as_operand() if isinstance(other, OperatorProxy) else other


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: OperatorProxy, other: Any) -> Any:
        return function(self._as_operand(), plain(other))

    return method


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: OperatorProxy, other: Any) -> Any:
        return function(other, self._as_operand())

    return method


def _unary(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: OperatorProxy) -> Any:
        return function(self._as_operand())

    return method


class OperatorProxy:
    """Base class of objects that forward operators and conversions to a value; results are plain values.

    Subclasses define equality, because it determines hashability.

    Examples
    --------
    >>> class Two(OperatorProxy):
    ...     def _as_operand(self):
    ...         return 2.0
    >>> 3 * Two() + Two(), -Two(), round(Two())
    (8.0, -2.0, 2)
    """

    __slots__ = ()

    def _as_operand(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define _as_operand()")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._as_operand())

    def __getitem__(self, key: Any) -> Any:
        return self._as_operand()[key]

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._as_operand(), digits)

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
    __divmod__, __rdivmod__ = _binary(divmod), _reflected(divmod)
    __pow__, __rpow__ = _binary(operator.pow), _reflected(operator.pow)
    __and__, __rand__ = _binary(operator.and_), _reflected(operator.and_)
    __or__, __ror__ = _binary(operator.or_), _reflected(operator.or_)
    __xor__, __rxor__ = _binary(operator.xor), _reflected(operator.xor)
    __lshift__, __rlshift__ = _binary(operator.lshift), _reflected(operator.lshift)
    __rshift__, __rrshift__ = _binary(operator.rshift), _reflected(operator.rshift)

    __lt__, __le__ = _binary(operator.lt), _binary(operator.le)
    __gt__, __ge__ = _binary(operator.gt), _binary(operator.ge)
