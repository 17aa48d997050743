"""The text of an exception, and notes below it that record where it was raised."""

from __future__ import annotations


def class_and_text(error: BaseException) -> str:
    """Return the name of an exception's class and its text, if it has one.

    Examples
    --------
    >>> class_and_text(ValueError("odd")), class_and_text(KeyboardInterrupt())
    ('ValueError: odd', 'KeyboardInterrupt')
    """
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def add_note(error: BaseException, note: str) -> None:
    """Add a line that tracebacks show below an exception, unless the exception has it already.

    Examples
    --------
    >>> error = KeyError("x")
    >>> add_note(error, "in element 3")
    >>> error.__notes__
    ['in element 3']
    """
    # BaseException.add_note exists from Python 3.11 on; in older versions, programs can read the list.
    notes = list(getattr(error, "__notes__", ()))
    if note not in notes:
        error.__notes__ = [*notes, note]  # type: ignore[attr-defined,unused-ignore]
