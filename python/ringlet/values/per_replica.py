"""PerReplica: a distributed value with different components, opaque outside replica context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ringlet.values.distributed_values import DistributedValues

T_co = TypeVar("T_co", covariant=True)


class PerReplica(DistributedValues[T_co]):
    """A value with a different component on every replica (``tf.types.experimental.distributed.PerReplica``).

    ``strategy.run`` passes each replica its component. Outside replica context a PerReplica has no operators and cannot
    be converted to an array, because the component is ambiguous; inside, NumPy uses the current replica's component.

    Parameters
    ----------
    values : iterable
        One component for each replica of this process, in replica order.

    Examples
    --------
    >>> losses = PerReplica([0.25, 0.5])
    >>> losses
    PerReplica:{
      0: 0.25,
      1: 0.5
    }
    >>> losses.values
    (0.25, 0.5)
    >>> np.asarray(losses)
    Traceback (most recent call last):
        ...
    ValueError: It looks like you are using a PerReplica object as an array outside of replica context: ...
    """

    __slots__ = ()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        for value in self._of_current_replica():
            array = np.asarray(value, dtype=dtype)
            return array.copy() if copy and array is value else array
        raise ValueError(
            "It looks like you are using a PerReplica object as an array outside of replica context: " + self._remedy()
        )

    def __getattr__(self, name: str) -> Any:
        missing = f"'PerReplica' object has no attribute {name!r}"
        if not name.startswith("_") and hasattr(np.ndarray, name):
            missing = f"{missing}: {self._remedy()}"
        raise AttributeError(missing, name=name, obj=self)

    def __format__(self, spec: str) -> str:
        if spec:
            raise TypeError(f"unsupported format string {spec!r} for a PerReplica: {self._remedy()}")
        return str(self)

    def __getitem__(self, key: object) -> Any:
        raise TypeError(f"'PerReplica' object is not subscriptable: {self._remedy()}")

    __iter__ = None  # otherwise __getitem__ would make it iterable

    def _remedy(self) -> str:
        return (
            f"it has {len(self._values)} components and no single value. Pass it to strategy.run(fn, args=(value,)), "
            "combine it with strategy.reduce('MEAN', value, axis=None), or take one of value.values"
        )


def _refused(text: str) -> Callable[..., Any]:
    def method(self: PerReplica[Any], *others: object) -> Any:
        if others and type(others[0]) not in (int, float, complex, bool, PerReplica) and "operand" in text:
            return NotImplemented  # an array operand converts this value with __array__
        names = [type(self).__name__, *(type(other).__name__ for other in others)]
        raise TypeError(f"{text.format(*names)}: {self._remedy()}")

    return method


# __len__ and __bool__ are not defined, so that `if value:` is true.
_OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "@": "matmul"}
for _symbol, _name in _OPERATORS.items():
    setattr(PerReplica, f"__{_name}__", _refused(f"unsupported operand type(s) for {_symbol}: {{0!r}} and {{1!r}}"))
    setattr(PerReplica, f"__r{_name}__", _refused(f"unsupported operand type(s) for {_symbol}: {{1!r}} and {{0!r}}"))
for _symbol, _name in {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "**": "pow"}.items():
    setattr(PerReplica, f"__{_name}__", _refused(f"unsupported operand type(s) for {_symbol}: {{0!r}} and {{1!r}}"))
for _name in ("abs", "round", "float", "int"):
    setattr(PerReplica, f"__{_name}__", _refused(f"{_name}() does not take {{0!r}}"))
