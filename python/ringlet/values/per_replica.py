"""PerReplica: a distributed value with different components, opaque outside replica context."""

from __future__ import annotations

from typing import Any, TypeVar

from numpy.typing import DTypeLike, NDArray

from ringlet.values.distributed_values import DistributedValues
from ringlet.values.ndarray_protocol import converted
from ringlet.values.opaque_value import OpaqueValue

T_co = TypeVar("T_co", covariant=True)


class PerReplica(OpaqueValue, DistributedValues[T_co]):
    """A value with a different component on every replica (``tf.types.experimental.distributed.PerReplica``).

    ``strategy.run`` passes each replica its component. Outside replica context a PerReplica has no operators and cannot
    be converted to an array, because the component is ambiguous; inside, NumPy uses the current replica's component.

    Parameters
    ----------
    values : iterable
        One component for each replica of this process, in replica order.

    Examples
    --------
    >>> import numpy as np
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
            return converted(value, dtype, copy)
        raise ValueError(
            "It looks like you are using a PerReplica object as an array outside of replica context: " + self._remedy()
        )

    def _remedy(self) -> str:
        return (
            f"it has {len(self._values)} components, one per replica, and no single value. "
            "strategy.local_results(value) returns them as a tuple, strategy.reduce('MEAN', value, axis=None) or "
            "strategy.gather(value, axis=0) combines them, strategy.run(fn, args=(value,)) passes each to its replica"
        )
