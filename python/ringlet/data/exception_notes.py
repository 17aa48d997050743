"""Notes on exceptions (PEP 678) for every supported version of Python."""

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
    # BaseException.add_note requires Python 3.11; before that, set the list of notes.
    notes = [*getattr(error, "__notes__", ()), note]
    error.__notes__ = notes  # type: ignore[attr-defined,unused-ignore]
