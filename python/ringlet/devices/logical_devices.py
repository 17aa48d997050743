"""Logical devices of this process: one for each core, or a number set before their first use."""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Mapping

from ringlet.devices.cores import CoreCount, visible_cores
from ringlet.devices.device_strings import Device

NUM_DEVICES_VARIABLE = "RINGLET_NUM_DEVICES"


class LogicalDevices:
    """The logical devices of one process; their number can be changed until it is first read.

    The default is ``RINGLET_NUM_DEVICES`` or the result of `cores`.
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
                    f"cannot change the number of logical devices to {asked}: this process already uses "
                    f"{len(self._names)} ({self._reason}). Call set_logical_devices before the first strategy, or set "
                    f"{NUM_DEVICES_VARIABLE}={asked}"
                )
            self._asked = asked

    def names(self) -> tuple[str, ...]:
        """Return the full names of the logical devices; the first call fixes their number."""
        if self._names is None:
            with self._lock:
                count, self._reason = self._count_and_reason()
                self._names = tuple(Device(index=index).full for index in range(count))
        return self._names

    def requested(self) -> tuple[str, ...]:
        """Return the full names, and fix their number, if `set_count` or the environment set it; else return ()."""
        with self._lock:
            is_asked = self._asked is not None or bool(self._environment.get(NUM_DEVICES_VARIABLE, "").strip())
        return self.names() if is_asked else ()

    @property
    def reason(self) -> str:
        """Text that explains the number of devices."""
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
            raise ValueError(
                f"{NUM_DEVICES_VARIABLE} must be an integer of at least 1, got {text!r}. Write "
                f"{NUM_DEVICES_VARIABLE}=2, or unset it: the default is one for each core"
            )
        return int(text), NUM_DEVICES_VARIABLE


def _positive_int(value: object) -> int:
    try:  # NumPy integers and arrays of one integer are accepted
        count = 0 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]  # may raise
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(f"the number of logical devices must be an int of at least 1, got {value!r}")
    return count


_DEVICES = LogicalDevices(os.environ, visible_cores)


def logical_devices() -> tuple[str, ...]:
    """Return the full names of the logical devices of this process; the first call fixes their number."""
    return _DEVICES.names()


def requested_devices() -> tuple[str, ...]:
    """Return the names of the logical devices if their number was set explicitly; else an empty tuple."""
    return _DEVICES.requested()


def logical_devices_reason() -> str:
    """Return the reason for the number of logical devices, in a few words."""
    return _DEVICES.reason


def set_logical_devices(count: int) -> None:
    """Set the number of logical devices of this process.

    Parameters
    ----------
    count : int
        At least 1; may exceed the number of cores.

    Raises
    ------
    RuntimeError
        If a different number of devices is already in use.
    ValueError
        If `count` is not a positive int.

    Examples
    --------
    >>> set_logical_devices(len(logical_devices()))
    """
    _DEVICES.set_count(count)
