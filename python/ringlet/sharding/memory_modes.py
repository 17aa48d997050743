"""Whether the devices of this process share memory, or have some of their own as if each were far away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

__all__ = ["Mode", "current_mode", "mode"]

Mode = Literal["shared", "copy"]

_MODE: ContextVar[Mode] = ContextVar("ringlet_sharding_mode", default="shared")


def current_mode() -> Mode:
    """Tell which mode new arrays are made in.

    Examples
    --------
    >>> current_mode()
    'shared'
    """
    return _MODE.get()


@contextmanager
def mode(name: Mode) -> Iterator[None]:
    """Say where arrays that are made inside the block keep what each device has.

    What programs compute is the same bits in both modes: ``"copy"`` is for tests that it is, and to see what a program
    does where memory is not shared.

    Parameters
    ----------
    name : {"shared", "copy"}
        ``"shared"``, the default outside of any block: the tiles of an array are views of one array, and nothing moves.
        ``"copy"``: each device has memory of its own, and what it has not got is copied there before it is used.

    Yields
    ------
    None

    Raises
    ------
    ValueError
        If there is no such mode.

    Examples
    --------
    >>> import ringlet
    >>> with ringlet.sharding.mode("copy"):
    ...     current_mode()
    'copy'
    """
    if name not in ("shared", "copy"):
        raise ValueError(f"there is no mode {name!r}: devices share memory, 'shared', or have their own, 'copy'")
    before = _MODE.set(name)
    try:
        yield
    finally:
        _MODE.reset(before)
