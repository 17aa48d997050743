"""Which failure of a run to report, and how to tell where replicas are."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping

from ringlet.errors import CollectiveAborted

__all__ = ["add_note", "first_failure", "follows_from_abort", "one_line", "whereabouts"]


def first_failure(failures: Mapping[int, BaseException]) -> tuple[int, BaseException]:
    """Choose the failure that a run raises.

    Parameters
    ----------
    failures : mapping of int to BaseException
        What replicas raised; not empty.

    Returns
    -------
    tuple of int and BaseException
        The first in this order: what ends the program (``SystemExit``, ``KeyboardInterrupt``), what has a cause of its
        own, what follows from another replica's failure; among equals the lowest replica.

    Examples
    --------
    >>> first_failure({0: CollectiveAborted("replica 1 raised"), 1: KeyError("x"), 2: ValueError("y")})
    (1, KeyError('x'))
    """

    def order(item: tuple[int, BaseException]) -> tuple[bool, bool, int]:
        replica, error = item
        return isinstance(error, Exception), follows_from_abort(error), replica

    return min(failures.items(), key=order)


def follows_from_abort(error: BaseException) -> bool:
    """Tell whether an exception comes from a collective that another rank's failure ended.

    Parameters
    ----------
    error : BaseException
        Its causes and contexts count as well.

    Returns
    -------
    bool

    Examples
    --------
    >>> follows_from_abort(CollectiveAborted("replica 1 raised")), follows_from_abort(KeyError("x"))
    (True, False)
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        if isinstance(link, CollectiveAborted):
            return True
        seen.add(id(link))
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return False


def add_note(error: BaseException, text: str) -> None:
    """Add a line that tracebacks show below an exception; also before Python 3.11, for who reads ``__notes__``.

    Parameters
    ----------
    error : BaseException
    text : str

    Examples
    --------
    >>> error = KeyError("x")
    >>> add_note(error, "raised in replica 1 of 2")
    >>> error.__notes__
    ['raised in replica 1 of 2']
    """
    notes = list(getattr(error, "__notes__", ()))
    if text not in notes:
        error.__notes__ = [*notes, text]  # type: ignore[attr-defined]  # known from Python 3.11 on


def one_line(error: BaseException) -> str:
    """Give the type and the message of an exception.

    Parameters
    ----------
    error : BaseException

    Returns
    -------
    str

    Examples
    --------
    >>> one_line(ValueError("bad shape"))
    'ValueError: bad shape'
    """
    return "".join(traceback.format_exception_only(type(error), error)).strip()


def whereabouts(thread: int | None) -> str:
    """Say which line a thread is at.

    Parameters
    ----------
    thread : int or None
        Its identifier, as ``threading.get_ident`` gives it; None if it is not known.

    Returns
    -------
    str

    Examples
    --------
    >>> import threading
    >>> whereabouts(threading.get_ident()).startswith("in whereabouts (")
    True
    """
    frame = None if thread is None else sys._current_frames().get(thread)
    if frame is None:
        return "in a thread that has ended"
    last = traceback.extract_stack(frame)[-1]
    return f"in {last.name} ({last.filename}:{last.lineno})"
