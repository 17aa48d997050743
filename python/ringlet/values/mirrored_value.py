"""Mirrored: a distributed value with equal components, which behaves like a single component."""

from __future__ import annotations

from typing import Any, TypeVar

from numpy.typing import DTypeLike, NDArray

from ringlet.values.distributed_values import DistributedValues
from ringlet.values.ndarray_protocol import converted
from ringlet.values.operator_proxy import OperatorProxy, plain

T_co = TypeVar("T_co", covariant=True)


class Mirrored(OperatorProxy, DistributedValues[T_co]):
    """A value that is kept equal on all replicas (``tf.types.experimental.distributed.Mirrored``).

    Operators, attributes and conversions apply to the current replica's component, or to the first component outside
    replica context. Results are plain values.

    Parameters
    ----------
    values : iterable
        One component for each replica of this process, in replica order.

    Examples
    --------
    >>> import numpy as np
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

    def _as_operand(self) -> T_co:
        for value in self._of_current_replica():
            return value
        return self._values[0]

    def __getattr__(self, name: str) -> Any:
        # Copy and pickle look up dunder methods, and must not find those of the component; during unpickling the
        # component does not exist yet.
        if name.startswith("__") or name == "_values":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return getattr(self._as_operand(), name)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return converted(self._as_operand(), dtype, copy)

    def __format__(self, specification: str) -> str:
        return format(self._as_operand(), specification) if specification else str(self)

    def __eq__(self, other: object) -> Any:
        return self._as_operand() == plain(other)

    def __ne__(self, other: object) -> Any:
        return self._as_operand() != plain(other)

    # == compares arrays elementwise, so the hash is by identity.
    __hash__ = object.__hash__
