"""Check of the destinations of a reduction: a device, or a value that stands for its devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.collectives.argument_parsing import shortened
from ringlet.devices import Device
from ringlet.values import DistributedValues


def check_destinations(destinations: Any) -> None:
    """Raise an error unless destinations are a device string or a value that stands for its devices.

    All devices are host memory, so destinations do not affect the values of a reduction.
    """
    if isinstance(destinations, DistributedValues) or getattr(destinations, "is_sharded_variable", False) is True:
        return
    if isinstance(destinations, str):
        if not destinations:
            raise ValueError("destinations can not be empty: name a device, such as 'CPU:0', or pass a variable")
        Device.parse(destinations)
        return
    # Plain variables have a device; arrays stand for the host, as tensors stand for their device in TensorFlow.
    if not isinstance(destinations, np.ndarray) and not isinstance(getattr(destinations, "device", None), str):
        raise TypeError(
            "destinations must be a device string such as 'CPU:0', a variable or a distributed value, got "
            f"{shortened(destinations)} of type {type(destinations).__name__}"
        )
