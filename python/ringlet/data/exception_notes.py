"""Lines below an exception that say where it happened."""

from __future__ import annotations

__all__ = ["add_note"]


def add_note(error: BaseException, note: str) -> None:
    """Add a line to an exception, which Python shows below it.

    Examples
    --------
    >>> error = KeyError("x")
    >>> add_note(error, "in element 3")
    >>> error.__notes__
    ['in element 3']
    """
    # BaseException.add_note came with Python 3.11; before, the list is there for who looks.
    notes = [*getattr(error, "__notes__", ()), note]
    error.__notes__ = notes  # type: ignore[attr-defined,unused-ignore]
