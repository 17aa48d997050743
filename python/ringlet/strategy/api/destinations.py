"""Where the result of a reduction is wanted: a device, or whatever lives on devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.devices import Device
from ringlet.values import DistributedValues

__all__ = ["check_destinations"]


def check_destinations(destinations: Any) -> None:
    """Refuse what names no device.

    All devices of this library share the memory of the host, so destinations decide nothing else.

    Parameters
    ----------
    destinations : str, DistributedValues, variable, ShardedVariable or ndarray
        A device string, or a value that lives on devices.

    Raises
    ------
    ValueError
        If the string is empty or cannot be read.
    TypeError
        If it is anything else, such as a list.

    Examples
    --------
    >>> check_destinations("CPU:0")
    >>> check_destinations("")
    Traceback (most recent call last):
        ...
    ValueError: destinations can not be empty: name a device, such as 'CPU:0', or give a variable
    """
    if isinstance(destinations, DistributedValues) or getattr(destinations, "is_sharded_variable", False) is True:
        return
    if isinstance(destinations, str):
        if not destinations:
            raise ValueError("destinations can not be empty: name a device, such as 'CPU:0', or give a variable")
        Device.parse(destinations)
        return
    # Plain variables have a device; arrays stand for the host, as tensors do for theirs.
    if not isinstance(destinations, np.ndarray) and not isinstance(getattr(destinations, "device", None), str):
        raise TypeError(
            "destinations are a device string such as 'CPU:0', a variable or a distributed value, got "
            f"{destinations!r} of type {type(destinations).__name__}"
        )
