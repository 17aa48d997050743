"""Which failure of a run to report, and how to tell where replicas are."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping

from ringlet.errors import CollectiveAborted

__all__ = ["add_note", "first_failure", "follows_from_abort", "one_line", "other_failures", "whereabouts"]


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
    """Give the type of an exception and the first line of its message.

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
    lines = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def other_failures(failures: Mapping[int, BaseException], raised: int) -> str:
    """Tell what happened in other replicas than the one whose exception is raised; what is equal is told once.

    Parameters
    ----------
    failures : mapping of int to BaseException
        What replicas raised. Those that follow from another one's failure are left out.
    raised : int
        The replica whose exception is raised.

    Returns
    -------
    str
        Continues a sentence about that replica; empty if there is nothing to tell.

    Examples
    --------
    >>> other_failures({0: KeyError("x"), 1: KeyError("x"), 2: KeyError("x"), 3: ValueError("y")}, raised=0)
    '; replicas 1-2: the same; replica 3 failed by itself, too: ValueError: y'
    """
    replicas_of: dict[str, list[int]] = {}
    for replica, error in sorted(failures.items()):
        if replica >= 0 and replica != raised and not follows_from_abort(error):
            replicas_of.setdefault(one_line(error), []).append(replica)
    same = replicas_of.pop(one_line(failures[raised]), [])
    parts = [f"; {_replicas(same)}: the same"] if same else []
    for text, replicas in replicas_of.items():
        themselves = "itself" if len(replicas) == 1 else "themselves"
        parts.append(f"; {_replicas(replicas)} failed by {themselves}, too: {text}")
    return "".join(parts)


def _replicas(numbers: list[int]) -> str:
    """A list of ascending numbers as people write it: ``replicas 1-3, 5``."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    return f"replica{'s' if len(numbers) > 1 else ''} " + ", ".join("-".join(map(str, ends)) for ends in ranges)


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
