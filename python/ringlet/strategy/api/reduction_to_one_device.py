"""ReductionToOneDevice: combines values on one device, with an optional user-defined sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet.collectives import CommunicationOptions, ReduceOp
from ringlet.collectives.adapters.array_adapters import common_kind, in_kind_of
from ringlet.collectives.buffers import as_buffer
from ringlet.strategy.api.cross_device_ops import CrossDeviceOps
from ringlet.strategy.calls.destinations import check_destinations
from ringlet.strategy.calls.reduce_semantics import divide, reduce_components


class ReductionToOneDevice(CrossDeviceOps):
    """Combines all components on one device (``tf.distribute.ReductionToOneDevice``).

    Parameters
    ----------
    reduce_to_device : str, optional
        Accepted for compatibility; without effect, because every device is host memory.
    accumulation_fn : callable, optional
        Takes a list with the array of each replica and returns their sum, or another combination; MEAN divides the
        result by the number of replicas. The default is the core's sum.

    Raises
    ------
    ValueError
        If the device string cannot be parsed.

    Examples
    --------
    >>> import numpy as np, ringlet
    >>> largest = ReductionToOneDevice(accumulation_fn=np.maximum.reduce)
    >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=largest)
    >>> print(strategy.reduce("SUM", ringlet.values.PerReplica([3.0, 5.0]), axis=None))
    5.0
    """

    def __init__(
        self, reduce_to_device: str | None = None, accumulation_fn: Callable[[list[Any]], Any] | None = None
    ) -> None:
        if reduce_to_device is not None:
            check_destinations(reduce_to_device)
        self.reduce_to_device = reduce_to_device
        self.accumulation_fn = accumulation_fn
        self._is_core = accumulation_fn is None

    def reduce_implementation(
        self, reduce_op: ReduceOp, per_replica_value: Any, destinations: Any, options: CommunicationOptions
    ) -> Any:
        """Combine the components, and copy the result to the destinations."""
        components = per_replica_value.values
        if self.accumulation_fn is None:
            total = reduce_components(reduce_op, per_replica_value, len(components))
        else:
            common_kind(components)
            total = np.asarray(self.accumulation_fn([as_buffer(component) for component in components]))
            if reduce_op is ReduceOp.MEAN:
                total = divide(total, len(components))
            total = in_kind_of(components[0], total)
        return self.broadcast_implementation(total, destinations)

    def __repr__(self) -> str:
        device, fn = self.reduce_to_device, self.accumulation_fn
        given = {"reduce_to_device": device and repr(device), "accumulation_fn": fn and getattr(fn, "__name__", fn)}
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in given.items() if text)})"
