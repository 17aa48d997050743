"""The logical devices of this process: as many as it has cores, or as many as somebody asked for in time."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Mapping
from typing import SupportsIndex

from ringlet.devices.cores import CoreCount, visible_cores
from ringlet.devices.device_strings import Device

__all__ = [
    "LogicalDevices",
    "logical_devices",
    "logical_devices_reason",
    "requested_devices",
    "set_logical_devices",
]

NUM_DEVICES_VARIABLE = "RINGLET_NUM_DEVICES"


class LogicalDevices:
    """The list of logical devices of one process: open to changes until somebody has read it.

    Parameters
    ----------
    environment : mapping of str to str
        Where ``RINGLET_NUM_DEVICES`` is looked up, at the first reading.
    cores : callable
        Gives the number of cores, and why, where nobody asked for another number of devices.

    Examples
    --------
    >>> devices = LogicalDevices({"RINGLET_NUM_DEVICES": "2"}, cores=visible_cores)
    >>> devices.names()
    ('/job:localhost/replica:0/task:0/device:CPU:0', '/job:localhost/replica:0/task:0/device:CPU:1')
    """

    def __init__(self, environment: Mapping[str, str], cores: Callable[[], CoreCount]) -> None:
        self._environment = environment
        self._cores = cores
        self._lock = threading.Lock()
        self._asked: int | None = None
        self._names: tuple[str, ...] | None = None
        self._reason = ""

    def set_count(self, count: int) -> None:
        """Choose the number of devices; see :func:`set_logical_devices`."""
        asked = _positive_int(count)
        with self._lock:
            if self._names is not None and len(self._names) != asked:
                raise RuntimeError(
                    f"cannot change the number of logical devices to {asked}: this process uses {len(self._names)} "
                    f"already ({self._reason}). Call set_logical_devices before the first strategy, or set "
                    f"{NUM_DEVICES_VARIABLE}={asked}"
                )
            self._asked = asked

    def names(self) -> tuple[str, ...]:
        """Give the full names; from the first call on their number is fixed."""
        if self._names is None:
            with self._lock:
                count, self._reason = self._count_and_reason()
                self._names = tuple(Device(index=index).full for index in range(count))
        return self._names

    def requested(self) -> tuple[str, ...]:
        """Give the full names if somebody asked for their number, which is fixed then; none otherwise."""
        with self._lock:
            is_asked = self._asked is not None or bool(self._environment.get(NUM_DEVICES_VARIABLE, "").strip())
        return self.names() if is_asked else ()

    @property
    def reason(self) -> str:
        """Why there are as many as there are, for ``show_config``."""
        with self._lock:
            return self._reason if self._names is not None else self._count_and_reason()[1]

    def _count_and_reason(self) -> tuple[int, str]:
        if self._asked is not None:
            return self._asked, "set_logical_devices"
        text = self._environment.get(NUM_DEVICES_VARIABLE, "").strip()
        if not text:
            cores = self._cores()
            return cores.count, cores.reason
        if not text.isdecimal() or int(text) < 1:
            raise ValueError(f"{NUM_DEVICES_VARIABLE} is a whole number of at least 1, got {text!r}. Correct it")
        return int(text), NUM_DEVICES_VARIABLE


def _positive_int(value: object) -> int:
    # NumPy's integers and its arrays of one are as good as an int.
    if isinstance(value, bool) or not hasattr(value, "__index__") or (count := _index_or_zero(value)) < 1:
        raise ValueError(f"the number of logical devices is an int of at least 1, got {value!r}")
    return count


def _index_or_zero(value: SupportsIndex) -> int:
    try:
        return operator.index(value)
    except TypeError:  # arrays have the method and may have several elements
        return 0


_DEVICES = LogicalDevices(os.environ, visible_cores)


def logical_devices() -> tuple[str, ...]:
    """Give the full names of the logical devices of this process.

    Returns
    -------
    tuple of str
        As many as :func:`set_logical_devices` or ``RINGLET_NUM_DEVICES`` asked for, else one per visible core. Their
        number is fixed from the first call on.

    Examples
    --------
    >>> logical_devices()[0]
    '/job:localhost/replica:0/task:0/device:CPU:0'
    """
    return _DEVICES.names()


def requested_devices() -> tuple[str, ...]:
    """Give the full names of the logical devices of this process, if somebody asked for a number of them.

    Returns
    -------
    tuple of str
        Empty unless :func:`set_logical_devices` was called or ``RINGLET_NUM_DEVICES`` is set.

    Examples
    --------
    >>> requested_devices() in ((), logical_devices())
    True
    """
    return _DEVICES.requested()


def logical_devices_reason() -> str:
    """Say in a few words why there are as many logical devices as there are.

    Returns
    -------
    str

    Examples
    --------
    >>> isinstance(logical_devices_reason(), str)
    True
    """
    return _DEVICES.reason


def set_logical_devices(count: int) -> None:
    """Choose how many logical devices this process has.

    Parameters
    ----------
    count : int
        At least 1; may exceed the number of cores.

    Raises
    ------
    RuntimeError
        If the devices are in use already, in another number.
    ValueError
        If `count` is not a positive int.

    Examples
    --------
    >>> set_logical_devices(len(logical_devices()))
    """
    _DEVICES.set_count(count)
