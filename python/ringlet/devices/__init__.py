"""Device names, available cores, and the logical devices of this process."""

from __future__ import annotations

from ringlet.devices.cores import CoreCount, count_cores, visible_cores
from ringlet.devices.device_strings import Device, canonicalize, canonicalize_distinct, short_list, short_name
from ringlet.devices.logical_devices import (
    LogicalDevices,
    logical_devices,
    logical_devices_reason,
    requested_devices,
    set_logical_devices,
)

__all__ = [
    "CoreCount",
    "Device",
    "LogicalDevices",
    "canonicalize",
    "canonicalize_distinct",
    "count_cores",
    "logical_devices",
    "logical_devices_reason",
    "requested_devices",
    "set_logical_devices",
    "short_list",
    "short_name",
    "visible_cores",
]
