"""PerReplica: a value that differs between replicas, opaque outside of them."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ringlet.values.distributed_values import DistributedValues

__all__ = ["PerReplica"]

T_co = TypeVar("T_co", covariant=True)


class PerReplica(DistributedValues[T_co]):
    """A value with another component on every replica (``tf.types.experimental.distributed.PerReplica``).

    ``strategy.run`` gives each replica its component. Outside of replicas a PerReplica is no array and has no
    operators: which component would be meant? Inside a replica NumPy takes that replica's component.

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
            f"It looks like you are using a PerReplica object as an array outside of replica context: it has "
            f"{len(self._values)} components and no single value. Pass it to strategy.run(fn, args=(value,)), combine "
            "it with strategy.reduce(op, value, axis), or take one of value.values"
        )
