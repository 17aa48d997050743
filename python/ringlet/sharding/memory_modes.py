"""Memory modes: devices of a process share memory, or each has its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Mode = Literal["shared", "copy"]

# In the mode "plan", arrays have one element in memory, and no values are computed or copied.
_MODE: ContextVar[Literal["shared", "copy", "plan"]] = ContextVar("ringlet_sharding_mode", default="shared")


def current_mode() -> Literal["shared", "copy", "plan"]:
    """Return the mode that applies to new arrays."""
    return _MODE.get()


def is_planning() -> bool:
    """Return whether operations are only planned."""
    return _MODE.get() == "plan"


@contextmanager
def planning() -> Iterator[None]:
    """Only plan the operations inside the block; their values are undefined."""
    before = _MODE.set("plan")
    try:
        yield
    finally:
        _MODE.reset(before)


@contextmanager
def mode(name: Mode) -> Iterator[None]:
    """Set whether devices share the memory of arrays that are created inside the block.

    Results are bit-identical in both modes. Mode ``"copy"`` is for tests: it simulates devices without shared memory.

    Parameters
    ----------
    name : {"shared", "copy"}
        ``"shared"``, the default: tiles are views of common memory, and no bytes move. ``"copy"``: each
        device has its own memory, and remote elements are copied there before use.

    Yields
    ------
    None

    Raises
    ------
    ValueError
        If `name` is not a mode.

    Examples
    --------
    >>> import ringlet
    >>> with ringlet.sharding.mode("copy"):
    ...     current_mode()
    'copy'
    """
    if name not in ("shared", "copy"):
        raise ValueError(
            f"{name!r} is not a memory mode: expected 'shared' (devices share memory) or 'copy' (each device has "
            "its own)"
        )
    before = _MODE.set(name)
    try:
        yield
    finally:
        _MODE.reset(before)
