"""OpaqueValue: operators and conversions that raise an error with a remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

_METHODS = ("numpy", "result")  # methods of tensors and futures; the methods of arrays are those of np.ndarray


class OpaqueValue:
    """Base class of objects that may be mistaken for arrays; most operators raise an error that ends in `_remedy`.

    Objects are truthy, and equal only to themselves.

    Examples
    --------
    >>> class Box(OpaqueValue):
    ...     def _remedy(self):
    ...         return "write box.open()"
    >>> Box() + 1
    Traceback (most recent call last):
        ...
    TypeError: unsupported operand type(s) for +: 'Box' and 'int': write box.open()
    """

    __slots__ = ()

    def _remedy(self) -> str:
        raise NotImplementedError(f"{type(self).__name__} does not define _remedy()")

    if not TYPE_CHECKING:  # hidden from type checkers, which then report absent attributes

        def __getattr__(self, name: str) -> Any:
            missing = f"{type(self).__name__!r} object has no attribute {name!r}"
            if not name.startswith("_") and (hasattr(np.ndarray, name) or name in _METHODS):
                missing = f"{missing}: {self._remedy()}"
            raise AttributeError(missing, name=name, obj=self)

        def __iter__(self) -> Any:
            raise TypeError(f"{type(self).__name__!r} object is not iterable: {self._remedy()}")

    def __format__(self, spec: str) -> str:
        if spec:
            raise TypeError(f"unsupported format string {spec!r} for a {type(self).__name__}: {self._remedy()}")
        return str(self)

    def __getitem__(self, key: object) -> Any:
        raise TypeError(f"{type(self).__name__!r} object is not subscriptable: {self._remedy()}")

    def __bool__(self) -> bool:  # otherwise bool() would call __len__
        return True


def _refused(text: str) -> Callable[..., Any]:
    def method(self: OpaqueValue, *others: object) -> Any:
        numbers = (int, float, complex, bool, type(self))
        if others and "operand" in text and type(others[0]) not in numbers and hasattr(self, "__array__"):
            return NotImplemented  # an array operand converts this value with __array__
        names = [type(self).__name__, *(type(other).__name__ for other in others)]
        raise TypeError(f"{text.format(*names)}: {self._remedy()}")

    return method


_OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "@": "matmul"}
for _symbol, _name in _OPERATORS.items():
    setattr(OpaqueValue, f"__{_name}__", _refused(f"unsupported operand type(s) for {_symbol}: {{0!r}} and {{1!r}}"))
    setattr(OpaqueValue, f"__r{_name}__", _refused(f"unsupported operand type(s) for {_symbol}: {{1!r}} and {{0!r}}"))
for _symbol, _name in {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "**": "pow"}.items():
    setattr(OpaqueValue, f"__{_name}__", _refused(f"unsupported operand type(s) for {_symbol}: {{0!r}} and {{1!r}}"))
for _name in ("abs", "float", "int", "len", "round"):
    setattr(OpaqueValue, f"__{_name}__", _refused(f"{_name}() does not take {{0!r}}"))
