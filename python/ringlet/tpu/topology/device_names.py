"""Names of the devices of a slice, as TensorFlow writes them."""

from __future__ import annotations

__all__ = ["device_name", "host_name"]


def host_name(task: int, job: str | None) -> str:
    """Name of the CPU of a host."""
    return f"/task:{task}/device:CPU:0" if job is None else f"/job:{job}/task:{task}/device:CPU:0"


def device_name(task: int, ordinal: int, job: str | None) -> str:
    """Name of a device."""
    return f"/task:{task}/device:TPU:{ordinal}" if job is None else f"/job:{job}/task:{task}/device:TPU:{ordinal}"
