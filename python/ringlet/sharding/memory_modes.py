"""Memory modes: devices of a process share memory, or each has its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Mode = Literal["shared", "copy"]

_MODE: ContextVar[Mode] = ContextVar("ringlet_sharding_mode", default="shared")


def current_mode() -> Mode:
    """Return the mode in which new arrays are made."""
    return _MODE.get()


@contextmanager
def mode(name: Mode) -> Iterator[None]:
    """Set the memory in which arrays made inside the block keep the tiles of each device.

    Results are bit-identical in both modes. ``"copy"`` is for testing this, and for observing a program without shared
    memory.

    Parameters
    ----------
    name : {"shared", "copy"}
        ``"shared"``, the default: the tiles of an array are views of one array, and no bytes move. ``"copy"``: each
        device has its own memory, and remote elements are copied there before use.

    Yields
    ------
    None

    Raises
    ------
    ValueError
        If the mode does not exist.

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
